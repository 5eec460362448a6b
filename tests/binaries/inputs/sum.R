library(Rmpi, lib.loc = file.path(Sys.getenv("R_HOME"), "site-library"))
rank <- mpi.comm.rank(0)
size <- mpi.comm.size(0)
sum <- mpi.allreduce(rank + 1, type = 2, op = "sum", comm = 0)
if (rank == 0) {
    object <- list(numbers = 1:5, text = "text")
    mpi.bcast.Robj(object, 0, 0)
} else {
    object <- mpi.bcast.Robj(rank = 0, comm = 0)
}
all <- mpi.gather.Robj(paste(object$text, rank), root = 0, comm = 0)
if (rank == 0) cat("sum", sum, "of", size, "ranks:", unlist(all), "\n")
invisible(mpi.quit())
