mp_exec, "total = mp_handin(double(mp_rank + 1))";
write, format="sum %g of %ld ranks\n", total, mp_size;
quit;
