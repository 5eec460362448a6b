//! The solution of small systems of linear equations.

/// Solves a symmetric system of equations by elimination, with the greatest pivot of each column.
/// An unknown whose column has no pivot is 0.
#[expect(clippy::needless_range_loop, reason = "rows and columns of one matrix")]
pub(super) fn solve(mut matrix: Vec<Vec<f64>>, mut right: Vec<f64>) -> Vec<f64> {
    let count = right.len();
    for column in 0..count {
        let greatest = (column..count).max_by(|one, other| {
            let size = |row: usize| matrix[row][column].abs();
            size(*one).total_cmp(&size(*other))
        });
        let pivot = greatest.unwrap_or(column);
        matrix.swap(column, pivot);
        right.swap(column, pivot);
        if matrix[column][column].abs() < 1e-12 {
            continue;
        }
        for row in column + 1..count {
            let factor = matrix[row][column] / matrix[column][column];
            for other in column..count {
                matrix[row][other] -= factor * matrix[column][other];
            }
            right[row] -= factor * right[column];
        }
    }
    let mut found = vec![0.0; count];
    for row in (0..count).rev() {
        let known: f64 = (row + 1..count)
            .map(|other| matrix[row][other] * found[other])
            .sum();
        if matrix[row][row].abs() >= 1e-12 {
            found[row] = (right[row] - known) / matrix[row][row];
        }
    }
    found
}
