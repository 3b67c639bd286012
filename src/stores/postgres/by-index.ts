/**
 * Goes with functions that look for a few rows by their keys. Before its tables have statistics, PostgreSQL would plan to walk them whole, since
 * they are small then, and keep that plan while they grow.
 */
export const BY_INDEX = "set enable_seqscan = off set enable_hashjoin = off set enable_mergejoin = off";
