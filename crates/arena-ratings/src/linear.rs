//! The linear algebra of a fit: symmetric matrices and their Cholesky factors.

/// A square matrix, row by row.
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct Matrix {
    size: usize,
    cells: Vec<f64>,
}

impl Matrix {
    pub(crate) fn zero(size: usize) -> Matrix {
        Matrix { size, cells: vec![0.0; size * size] }
    }

    pub(crate) fn at(&self, row: usize, column: usize) -> f64 {
        self.cells[row * self.size + column]
    }

    pub(crate) fn add(&mut self, row: usize, column: usize, value: f64) {
        self.cells[row * self.size + column] += value;
    }

    pub(crate) fn row(&self, row: usize) -> &[f64] {
        &self.cells[row * self.size..][..self.size]
    }

    fn row_mut(&mut self, row: usize) -> &mut [f64] {
        &mut self.cells[row * self.size..][..self.size]
    }

    /// Copies the lower triangle to the upper triangle.
    pub(crate) fn mirror(&mut self) {
        for row in 0..self.size {
            for column in 0..row {
                self.cells[column * self.size + row] = self.cells[row * self.size + column];
            }
        }
    }

    /// Returns the lower triangular factor of a positive definite matrix, from its lower triangle. `None` if the matrix
    /// is numerically singular.
    pub(crate) fn cholesky(&self) -> Option<Cholesky> {
        let mut factor = Matrix::zero(self.size);
        for row in 0..self.size {
            for column in 0..=row {
                let sum = self.at(row, column) - dot(&factor.row(row)[..column], &factor.row(column)[..column]);
                if column < row {
                    factor.cells[row * self.size + column] = sum / factor.at(column, column);
                } else if sum > 1e-11 * self.at(row, row) {
                    factor.cells[row * self.size + row] = sum.sqrt();
                } else {
                    return None;
                }
            }
        }
        Some(Cholesky { factor })
    }

    /// Returns `self` × `other`, where `other` is symmetric.
    pub(crate) fn times_symmetric(&self, other: &Matrix) -> Matrix {
        let mut product = Matrix::zero(self.size);
        for row in 0..self.size {
            for column in 0..self.size {
                product.cells[row * self.size + column] = dot(self.row(row), other.row(column));
            }
        }
        product
    }
}

/// A lower triangular factor L of a matrix L Lᵀ.
pub(crate) struct Cholesky {
    factor: Matrix,
}

impl Cholesky {
    /// Returns the natural logarithm of the matrix's determinant.
    pub(crate) fn log_determinant(&self) -> f64 {
        (0..self.factor.size).map(|at| 2.0 * self.factor.at(at, at).ln()).sum()
    }

    /// Solves matrix · x = `right`.
    pub(crate) fn solve(&self, right: &[f64]) -> Vec<f64> {
        let factor = &self.factor;
        let mut x = right.to_vec();
        for row in 0..factor.size {
            x[row] = (x[row] - dot(&factor.row(row)[..row], &x[..row])) / factor.at(row, row);
        }
        for row in (0..factor.size).rev() {
            x[row] /= factor.at(row, row);
            let solved = x[row];
            for (value, cell) in x[..row].iter_mut().zip(factor.row(row)) {
                *value -= cell * solved;
            }
        }
        x
    }

    pub(crate) fn inverse(&self) -> Matrix {
        let size = self.factor.size;
        // The matrix L⁻ᵀ, the transpose of L⁻¹.
        let mut transposed = Matrix::zero(size);
        for column in 0..size {
            let cells = transposed.row_mut(column);
            cells[column] = 1.0 / self.factor.at(column, column);
            for row in column + 1..size {
                let sum = dot(&self.factor.row(row)[column..row], &cells[column..row]);
                cells[row] = -sum / self.factor.at(row, row);
            }
        }
        let mut inverse = Matrix::zero(size);
        for row in 0..size {
            for column in 0..=row {
                let cell = dot(&transposed.row(row)[row..], &transposed.row(column)[row..]);
                inverse.cells[row * size + column] = cell;
            }
        }
        inverse.mirror();
        inverse
    }
}

/// Returns the dot product, in four partial sums that the processor can add in parallel. The fixed order makes the
/// result reproducible.
pub(crate) fn dot(a: &[f64], b: &[f64]) -> f64 {
    let (mut sums, (a4, a_rest), (b4, b_rest)) = ([0.0; 4], a.as_chunks::<4>(), b.as_chunks::<4>());
    for (a, b) in a4.iter().zip(b4) {
        for at in 0..4 {
            sums[at] += a[at] * b[at];
        }
    }
    let rest: f64 = a_rest.iter().zip(b_rest).map(|(a, b)| a * b).sum();
    (sums[0] + sums[1]) + (sums[2] + sums[3]) + rest
}

#[cfg(test)]
mod tests {
    use super::*;

    fn sample() -> Matrix {
        let mut matrix = Matrix::zero(6);
        for row in 0..6 {
            for column in 0..6 {
                matrix.add(row, column, 1.0 / (1.0 + row as f64 + column as f64) + f64::from(row == column));
            }
        }
        matrix
    }

    #[test]
    fn inverse_undoes_the_matrix() {
        let matrix = sample();
        let product = matrix.times_symmetric(&matrix.cholesky().unwrap().inverse());
        for row in 0..6 {
            for column in 0..6 {
                assert!((product.at(row, column) - f64::from(row == column)).abs() < 1e-14);
            }
        }
    }

    #[test]
    fn solution_is_the_inverse_times_the_right_side() {
        let factor = sample().cholesky().unwrap();
        let right = [1.0, -2.0, 0.5, 3.0, 0.0, 1.0];
        let (solution, inverse) = (factor.solve(&right), factor.inverse());
        for (row, value) in solution.iter().enumerate() {
            assert!((value - dot(inverse.row(row), &right)).abs() < 1e-14);
        }
    }

    #[test]
    fn singular_matrix_has_no_factor() {
        let mut matrix = Matrix::zero(2);
        for (row, column) in [(0, 0), (0, 1), (1, 0), (1, 1)] {
            matrix.add(row, column, 0.1);
        }
        assert!(matrix.cholesky().is_none());
    }
}
