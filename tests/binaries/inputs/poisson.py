"""Poisson's equation on a square by PETSc, whose solution is known."""

import sys

import petsc4py

petsc4py.init(sys.argv)
from petsc4py import PETSc  # noqa: E402

SIDE = 40
grid = PETSc.DMDA().create([SIDE, SIDE], stencil_width=1)
matrix = grid.createMatrix()
(x0, x1), (y0, y1) = grid.getRanges()
row, column = PETSc.Mat.Stencil(), PETSc.Mat.Stencil()
for y in range(y0, y1):
    for x in range(x0, x1):
        row.index = (x, y)
        for dx, dy, value in ((0, 0, 4.0), (-1, 0, -1.0), (1, 0, -1.0), (0, -1, -1.0), (0, 1, -1.0)):
            if 0 <= x + dx < SIDE and 0 <= y + dy < SIDE:
                column.index = (x + dx, y + dy)
                matrix.setValueStencil(row, column, value)
matrix.assemble()
known, right, found = (grid.createGlobalVector() for _ in range(3))
start, end = known.getOwnershipRange()
known.setValues(range(start, end), [1.0 + at % 7 for at in range(start, end)])
known.assemble()
matrix.mult(known, right)
solver = PETSc.KSP().create()
solver.setOperators(matrix)
solver.setType("cg")
solver.getPC().setType("bjacobi")
solver.setTolerances(rtol=1e-12, max_it=1000)
solver.solve(right, found)
found.axpy(-1.0, known)
difference = found.norm(PETSc.NormType.INFINITY)
if grid.getComm().rank == 0:
    print(f"{grid.getComm().size} ranks, converged {solver.getConvergedReason() > 0}, difference below 1e-8 {difference < 1e-8}")
