//! Networks as a grid: links by round-trip times by losses, so that a study states its axes and not every cell.
//!
//! Cells stand link by link, within a link by round-trip time, within that by loss. A cell's network bears the name that
//! [`Network::named`] reads, so that a load's seed is the same whether its network was listed or is of a grid.

use serde::Deserialize;

use crate::error::Error;

/// The most cells of a grid. A study of 35 pages, two transports and ten runs makes 358,400 loads of so many: minutes.
pub const CELLS_MAX: usize = 512;

/// The axes of a grid.
#[derive(Clone, PartialEq, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Grid {
    /// Rates of the access link, kbit/s: towards the client, towards the servers.
    pub links_kbps: Vec<[u64; 2]>,
    /// Round-trip times, milliseconds.
    pub rtts_ms: Vec<f64>,
    /// Packets lost at random each way, percent; none unless stated.
    #[serde(default = "lossless")]
    pub losses_pct: Vec<f64>,
}

fn lossless() -> Vec<f64> {
    vec![0.0]
}

impl Grid {
    /// The names of its networks, in the order of its cells.
    ///
    /// # Errors
    /// If an axis is empty or has a value twice, or if there are more than [`CELLS_MAX`] cells. Whether each value is one that a network
    /// can have is for [`Network::named`](crate::network::Network::named).
    pub(super) fn networks(&self) -> Result<Vec<String>, Error> {
        axis("links_kbps", &self.links_kbps)?;
        axis("rtts_ms", &self.rtts_ms)?;
        axis("losses_pct", &self.losses_pct)?;
        let sizes = [self.links_kbps.len(), self.rtts_ms.len(), self.losses_pct.len()];
        let cells = sizes.into_iter().try_fold(1usize, usize::checked_mul).unwrap_or(usize::MAX);
        if cells > CELLS_MAX {
            let [links, rtts, losses] = sizes;
            return Err(Error::Asked(format!(
                "{links} links by {rtts} round-trip times by {losses} losses are more than {CELLS_MAX} networks; state fewer"
            )));
        }
        let mut out = Vec::with_capacity(cells);
        for [down, up] in &self.links_kbps {
            for rtt in &self.rtts_ms {
                for loss in &self.losses_pct {
                    let loss = if *loss == 0.0 { String::new() } else { format!("/{loss}") };
                    out.push(format!("{down}/{up}/{rtt}{loss}"));
                }
            }
        }
        Ok(out)
    }

    /// Which network a cell is, by the places of its values on the axes.
    pub(super) fn cell(&self, link: usize, rtt: usize, loss: usize) -> usize {
        (link * self.rtts_ms.len() + rtt) * self.losses_pct.len() + loss
    }

    /// A figure of each cell along the round-trip times.
    pub(super) fn over_rtt(
        &self,
        link: usize,
        loss: usize,
        figure: impl Fn(usize) -> f64,
    ) -> Vec<(f64, f64)> {
        (0..).zip(&self.rtts_ms).map(|(rtt, ms)| (*ms, figure(self.cell(link, rtt, loss)))).collect()
    }

    /// A figure of each cell along the losses.
    pub(super) fn over_loss(
        &self,
        link: usize,
        rtt: usize,
        figure: impl Fn(usize) -> f64,
    ) -> Vec<(f64, f64)> {
        (0..).zip(&self.losses_pct).map(|(loss, pct)| (*pct, figure(self.cell(link, rtt, loss)))).collect()
    }

    /// A link as people say it: `5 / 1 Mbit/s`.
    pub(super) fn link_name(&self, link: usize) -> String {
        let [down, up] = self.links_kbps[link].map(|kbps| kbps as f64 / 1e3);
        format!("{down} / {up} Mbit/s")
    }
}

fn axis<T: PartialEq + std::fmt::Debug>(name: &str, values: &[T]) -> Result<(), Error> {
    if values.is_empty() {
        return Err(Error::Asked(format!("{name} is empty: an axis has one value at least")));
    }
    match values.iter().enumerate().find(|(i, value)| values[..*i].contains(value)) {
        Some((_, twice)) => Err(Error::Asked(format!("{name} has {twice:?} twice"))),
        None => Ok(()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::network::Network;

    fn grid(text: &str) -> Grid {
        toml::from_str(text).unwrap()
    }

    #[test]
    fn cells_stand_by_link_then_round_trip_then_loss_under_the_names_that_a_list_would_have() {
        let grid = grid("links_kbps = [[5000, 1000], [2000, 386]]\nrtts_ms = [0, 20.5]\nlosses_pct = [0, 1]");
        let names = grid.networks().unwrap();
        assert_eq!(names[..3], ["5000/1000/0", "5000/1000/0/1", "5000/1000/20.5"]);
        assert_eq!((names.len(), names[grid.cell(1, 1, 1)].as_str()), (8, "2000/386/20.5/1"));
        let network = Network::named(&names[grid.cell(1, 0, 1)]).unwrap();
        assert_eq!((network.rtt_ms, network.loss_down_pct), (0.0, 1.0));
    }

    #[test]
    fn a_grid_without_losses_is_lossless() {
        assert_eq!(grid("links_kbps = [[5000, 1000]]\nrtts_ms = [20]").networks().unwrap(), ["5000/1000/20"]);
    }

    #[test]
    fn an_axis_that_is_empty_repeats_itself_or_is_too_long_is_named() {
        let many: Vec<String> = (0..200).map(|n| n.to_string()).collect();
        let many = many.join(",");
        for (text, says) in [
            (
                "links_kbps = []\nrtts_ms = [1]".to_owned(),
                "links_kbps is empty: an axis has one value at least",
            ),
            ("links_kbps = [[1, 2]]\nrtts_ms = [20, 40, 20]".to_owned(), "rtts_ms has 20.0 twice"),
            (
                format!("links_kbps = [[1, 2], [1, 3]]\nrtts_ms = [{many}]\nlosses_pct = [0, 1]"),
                "2 links by 200 round-trip times by 2 losses are more than 512 networks; state fewer",
            ),
        ] {
            assert_eq!(grid(&text).networks().unwrap_err().to_string(), says);
        }
    }
}
