/* A Poisson equation on a square, by HYPRE's BoomerAMG and conjugate gradients, each rank with the same number of rows. */
#include <HYPRE.h>
#include <HYPRE_krylov.h>
#include <HYPRE_parcsr_ls.h>
#include <mpi.h>
#include <stdio.h>
#include <stdlib.h>

#define SIDE 64

int main(int argc, char **argv) {
    int rank, size;
    MPI_Init(&argc, &argv);
    MPI_Comm_rank(MPI_COMM_WORLD, &rank);
    MPI_Comm_size(MPI_COMM_WORLD, &size);
    HYPRE_Init();
    int rows = SIDE * SIDE, first = rank * (rows / size), last = rank == size - 1 ? rows - 1 : first + rows / size - 1;
    HYPRE_IJMatrix matrix;
    HYPRE_IJVector right, solution;
    HYPRE_IJMatrixCreate(MPI_COMM_WORLD, first, last, first, last, &matrix);
    HYPRE_IJMatrixSetObjectType(matrix, HYPRE_PARCSR);
    HYPRE_IJMatrixInitialize(matrix);
    HYPRE_IJVectorCreate(MPI_COMM_WORLD, first, last, &right);
    HYPRE_IJVectorSetObjectType(right, HYPRE_PARCSR);
    HYPRE_IJVectorInitialize(right);
    HYPRE_IJVectorCreate(MPI_COMM_WORLD, first, last, &solution);
    HYPRE_IJVectorSetObjectType(solution, HYPRE_PARCSR);
    HYPRE_IJVectorInitialize(solution);
    for (int row = first; row <= last; row++) {
        int columns[5], count = 0, x = row % SIDE, y = row / SIDE;
        double values[5], one = 1, zero = 0;
        if (y > 0) columns[count] = row - SIDE, values[count++] = -1;
        if (x > 0) columns[count] = row - 1, values[count++] = -1;
        columns[count] = row, values[count++] = 4;
        if (x < SIDE - 1) columns[count] = row + 1, values[count++] = -1;
        if (y < SIDE - 1) columns[count] = row + SIDE, values[count++] = -1;
        HYPRE_IJMatrixSetValues(matrix, 1, &count, &row, columns, values);
        HYPRE_IJVectorSetValues(right, 1, &row, &one);
        HYPRE_IJVectorSetValues(solution, 1, &row, &zero);
    }
    HYPRE_ParCSRMatrix a;
    HYPRE_ParVector b, u;
    HYPRE_IJMatrixAssemble(matrix);
    HYPRE_IJMatrixGetObject(matrix, (void **)&a);
    HYPRE_IJVectorAssemble(right);
    HYPRE_IJVectorGetObject(right, (void **)&b);
    HYPRE_IJVectorAssemble(solution);
    HYPRE_IJVectorGetObject(solution, (void **)&u);
    HYPRE_Solver pcg, amg;
    HYPRE_ParCSRPCGCreate(MPI_COMM_WORLD, &pcg);
    HYPRE_PCGSetMaxIter(pcg, 100);
    HYPRE_PCGSetTol(pcg, 1e-9);
    HYPRE_BoomerAMGCreate(&amg);
    HYPRE_BoomerAMGSetMaxIter(amg, 1);
    HYPRE_BoomerAMGSetTol(amg, 0);
    HYPRE_BoomerAMGSetRelaxType(amg, 6);
    HYPRE_PCGSetPrecond(pcg, (HYPRE_PtrToSolverFcn)HYPRE_BoomerAMGSolve, (HYPRE_PtrToSolverFcn)HYPRE_BoomerAMGSetup, amg);
    HYPRE_ParCSRPCGSetup(pcg, a, b, u);
    HYPRE_ParCSRPCGSolve(pcg, a, b, u);
    int iterations, middle = (SIDE / 2) * SIDE + SIDE / 2;
    double residual, value = 0, sum;
    HYPRE_PCGGetNumIterations(pcg, &iterations);
    HYPRE_PCGGetFinalRelativeResidualNorm(pcg, &residual);
    if (first <= middle && middle <= last) HYPRE_IJVectorGetValues(solution, 1, &middle, &value);
    MPI_Allreduce(&value, &sum, 1, MPI_DOUBLE, MPI_SUM, MPI_COMM_WORLD);
    if (rank == 0) printf("%d ranks, residual %s 1e-9, value in the middle %.5f\n", size, residual < 1e-9 ? "below" : "above", sum);
    HYPRE_Finalize();
    MPI_Finalize();
    return 0;
}
