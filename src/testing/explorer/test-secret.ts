/** What tokens of callbacks are made with in tests: the same in each process, as one that is configured is. */
export const TEST_SECRET = "a secret for tests, where nobody has to be kept out";
