//! The page loader: discovers, blocks, computes, paints; yields timings
