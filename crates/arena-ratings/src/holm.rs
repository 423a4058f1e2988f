//! Holm's correction for several comparisons in one table.

/// Returns the adjusted p values in the order of the input (Holm, 1979).
///
/// If all hypotheses with an adjusted p value of at most α are rejected, the probability of rejecting any true
/// hypothesis is at most α. The p values may depend on each other.
pub fn holm(p_values: &[f64]) -> Vec<f64> {
    let mut order: Vec<usize> = (0..p_values.len()).collect();
    order.sort_by(|one, two| p_values[*one].total_cmp(&p_values[*two]).then(one.cmp(two)));
    let mut adjusted = vec![0.0; p_values.len()];
    let mut least: f64 = 0.0;
    for (rank, at) in order.into_iter().enumerate() {
        let weighted = p_values[at] * (p_values.len() - rank) as f64;
        least = least.max(weighted.min(1.0));
        adjusted[at] = least;
    }
    adjusted
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::clustered::ClusteredMean;
    use crate::testing::Random;

    #[test]
    fn small_tables_are_adjusted_by_hand() {
        assert_eq!(holm(&[]), Vec::<f64>::new());
        assert_eq!(holm(&[0.03]), [0.03]);
        assert_eq!(holm(&[0.5, 0.01]), [0.5, 0.02]);
        assert_eq!(holm(&[0.25, 0.125, 0.25]), [0.5, 0.375, 0.5]);
        assert_eq!(holm(&[0.9, 0.9, 0.9]), [1.0, 1.0, 1.0]);
    }

    /// Returns the share of simulated tables with a false claim. All pairs of `agents` equal agents are compared, so
    /// the p values depend on each other.
    fn false_tables(agents: usize, adjust: fn(&[f64]) -> Vec<f64>) -> f64 {
        let mut random = Random(agents as u64);
        let (runs, mut wrong) = (1_000, 0);
        for _ in 0..runs {
            let scores: Vec<Vec<f64>> = (0..agents).map(|_| (0..20).map(|_| random.normal()).collect()).collect();
            let mut p_values = Vec::new();
            for one in 0..agents {
                for two in 0..one {
                    let values = scores[one].iter().zip(&scores[two]).map(|(one, two)| one - two);
                    p_values.push(ClusteredMean::of((0..).zip(values)).unwrap().p_value().unwrap());
                }
            }
            wrong += u32::from(adjust(&p_values).iter().any(|p| *p < 0.05));
        }
        f64::from(wrong) / f64::from(runs)
    }

    #[test]
    fn at_most_five_of_a_hundred_tables_have_a_false_claim() {
        for agents in [2, 4, 6] {
            let found = false_tables(agents, holm);
            // Three standard errors of the simulation above 5 %.
            assert!(found <= 0.07, "{agents}: {found}");
        }
        let found = false_tables(6, |p_values| p_values.to_vec());
        assert!(found > 0.2, "without the correction: {found}");
    }
}
