//! Plans, runs, paired statistics and result files
