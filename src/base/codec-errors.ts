/** The errors every JavaScript program has. Only these come back as their own class: nothing stored can name another. */
export const builtinErrors: ReadonlyMap<string, (message: string) => Error> = new Map([
  ["Error", (message: string) => new Error(message)],
  ["AggregateError", (message: string) => new AggregateError([], message)],
  ["EvalError", (message: string) => new EvalError(message)],
  ["RangeError", (message: string) => new RangeError(message)],
  ["ReferenceError", (message: string) => new ReferenceError(message)],
  ["SyntaxError", (message: string) => new SyntaxError(message)],
  ["TypeError", (message: string) => new TypeError(message)],
  ["URIError", (message: string) => new URIError(message)],
]);
