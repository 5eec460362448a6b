/* A profiling tool: it stands before the library, and passes MPI_Pcontrol on by the profiled name. */
int PMPI_Pcontrol(const int level, ...);

int MPI_Pcontrol(const int level, ...)
{
    return PMPI_Pcontrol(level);
}
