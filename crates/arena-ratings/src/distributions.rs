//! The normal distribution and Student's t-distribution, to about twelve digits.

use std::f64::consts::{FRAC_2_SQRT_PI, PI, SQRT_2};

/// The confidence level of all intervals.
pub const LEVEL: f64 = 0.95;

/// The 97.5th percentile of the normal distribution.
pub(crate) const Z: f64 = 1.959_963_984_540_054;

/// The degrees of freedom above which the normal distribution replaces Student's.
const MANY: f64 = 1e7;

/// Returns the probability that a normal variable is below `x`.
pub(crate) fn normal_below(x: f64) -> f64 {
    let tail = 0.5 * complementary_error(x.abs() / SQRT_2);
    if x < 0.0 { tail } else { 1.0 - tail }
}

/// Returns erfc(x) for x ≥ 0.
fn complementary_error(x: f64) -> f64 {
    if x < 2.5 {
        // erf(x) = 2/√π e^(-x²) (x + 2x³/3 + 4x⁵/15 + …)
        let (mut term, mut sum, mut n) = (x, x, 0.0);
        while term > 1e-17 * sum {
            n += 1.0;
            term *= 2.0 * x * x / (2.0 * n + 1.0);
            sum += term;
        }
        1.0 - FRAC_2_SQRT_PI * (-x * x).exp() * sum
    } else {
        // The continued fraction x + (1/2)/(x + 1/(x + (3/2)/(x + …))), evaluated from its far end.
        let fraction = (1..=80).rev().fold(x, |rest, n| x + 0.5 * f64::from(n) / rest);
        0.5 * FRAC_2_SQRT_PI * (-x * x).exp() / fraction
    }
}

/// Returns the probability that a variable with Student's distribution is outside ±`t`.
pub(crate) fn student_outside(t: f64, freedom: f64) -> f64 {
    if freedom > MANY {
        return complementary_error(t.abs() / SQRT_2);
    }
    incomplete_beta(freedom / (freedom + t * t), freedom / 2.0, 0.5)
}

/// Returns the two-sided 5 % quantile of Student's distribution: the absolute value of a variable exceeds it with
/// probability 0.05.
pub(crate) fn student_quantile(freedom: f64) -> f64 {
    if freedom > MANY {
        return Z;
    }
    student_quantile_at(freedom, 1.0 - LEVEL)
}

/// Returns the two-sided quantile of Student's distribution for the probability `outside`, which must be at most 0.05.
pub(crate) fn student_quantile_at(freedom: f64, outside: f64) -> f64 {
    // Bisection, since the probability of the tails decreases with the value. The number of bisection steps is fixed,
    // so that the result is reproducible.
    let (mut low, mut high) = (Z, 2.0 * Z);
    while student_outside(high, freedom) > outside {
        low = high;
        high *= 2.0;
    }
    for _ in 0..48 {
        let middle = 0.5 * (low + high);
        if student_outside(middle, freedom) > outside {
            low = middle;
        } else {
            high = middle;
        }
    }
    0.5 * (low + high)
}

/// Returns the density at `s` of the estimated standard deviation of a normal variable with standard deviation 1: the
/// root of a chi-squared variable divided by its degrees of freedom.
pub(crate) fn chi_density(s: f64, freedom: f64) -> f64 {
    if s <= 0.0 {
        // The density of one degree is that of the absolute value of a normal variable.
        return if freedom == 1.0 && s == 0.0 { (2.0 / PI).sqrt() } else { 0.0 };
    }
    let half = freedom / 2.0;
    2.0 * (half * half.ln() - log_gamma(half) + (freedom - 1.0) * s.ln() - half * s * s).exp()
}

/// Returns the regularized incomplete beta function, by its continued fraction.
fn incomplete_beta(x: f64, a: f64, b: f64) -> f64 {
    if x <= 0.0 || x >= 1.0 {
        return x.clamp(0.0, 1.0);
    }
    // The fraction converges quickly on this side of the mean only; the other side follows by symmetry.
    if x > (a + 1.0) / (a + b + 2.0) {
        return 1.0 - incomplete_beta(1.0 - x, b, a);
    }
    let front = (a * x.ln() + b * (-x).ln_1p() + log_gamma(a + b) - log_gamma(a) - log_gamma(b)).exp() / a;
    let apart = |value: f64| if value.abs() < 1e-300 { 1e-300 } else { value };
    // Lentz's algorithm: the fraction as a product, from its near end.
    let (mut c, mut d) = (1.0, 1.0 / apart(1.0 - (a + b) * x / (a + 1.0)));
    let mut fraction = d;
    for n in 1..=500 {
        let m = f64::from(n);
        for numerator in [
            m * (b - m) * x / ((a + 2.0 * m - 1.0) * (a + 2.0 * m)),
            -(a + m) * (a + b + m) * x / ((a + 2.0 * m) * (a + 2.0 * m + 1.0)),
        ] {
            d = 1.0 / apart(1.0 + numerator * d);
            c = apart(1.0 + numerator / c);
            fraction *= c * d;
        }
        if (c * d - 1.0).abs() < 1e-15 {
            break;
        }
    }
    front * fraction
}

/// Returns ln Γ(x) for x > 0, by Stirling's series after shifting x to 12 or more, where the series is accurate.
fn log_gamma(x: f64) -> f64 {
    let (mut x, mut shift) = (x, 1.0);
    while x < 12.0 {
        shift *= x;
        x += 1.0;
    }
    let y = 1.0 / (x * x);
    let series = (1.0 / 12.0 - y * (1.0 / 360.0 - y * (1.0 / 1260.0 - y * (1.0 / 1680.0 - y / 1188.0)))) / x;
    (x - 0.5) * x.ln() - x + 0.5 * (2.0 * PI).ln() + series - shift.ln()
}

#[cfg(test)]
mod tests {
    use super::*;

    // Reference values from scipy 1.17: `scipy.stats.norm.cdf`, `2 * scipy.stats.t.sf`, `scipy.stats.t.ppf(0.975,
    // freedom)`.
    #[test]
    fn values_match_scipy() {
        for (x, below) in NORMAL {
            assert!((normal_below(x) / below - 1.0).abs() < 1e-10, "{x}: {}", normal_below(x));
        }
        for (t, freedom, outside) in STUDENT {
            let found = student_outside(t, freedom);
            assert!((found / outside - 1.0).abs() < 1e-8, "{t} {freedom}: {found}");
        }
        for (freedom, quantile) in QUANTILES {
            let found = student_quantile(freedom);
            assert!((found / quantile - 1.0).abs() < 1e-8, "{freedom}: {found}");
        }
    }

    const NORMAL: [(f64, f64); 6] = [
        (-9.0, 1.1285884059538324e-19),
        (-4.0, 3.167124183311986e-05),
        (-1.0, 0.15865525393145707),
        (0.0, 0.5),
        (0.5, 0.6914624612740131),
        (3.0, 0.9986501019683699),
    ];
    const STUDENT: [(f64, f64, f64); 6] = [
        (1.0, 1.0, 0.5000000000000001),
        (2.5, 3.0, 0.08770664700806556),
        (2.0, 10.5, 0.0720338001569683),
        (6.0, 40.0, 4.7264551327881806e-07),
        (4.4, 1000.0, 1.1986590082133438e-05),
        (3.0, 1000000.0, 0.0026998625414218),
    ];
    const QUANTILES: [(f64, f64); 5] = [
        (1.0, 12.706204736174694),
        (2.5, 3.5746548420036817),
        (10.0, 2.228138851986274),
        (100.0, 1.9839715185235518),
        (100000.0, 1.9599877075346095),
    ];
}
