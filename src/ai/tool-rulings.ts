// `toolApproval` of ai 7
// There a setting of the call says which tool calls people are asked about. What it says is noted and left to the durable tools, which ask all
// of a round at once and wait; to the SDK such a call is one that needs nothing.

type Status = string | { readonly type: string } | undefined;
type Rule = (...args: readonly unknown[]) => Status | PromiseLike<Status>;

/** What the setting may be: one rule for all tools, or one for each. */
type ToolApproval = Rule | Readonly<Record<string, Status | Rule>>;

/** The setting for the SDK, and what it has come to for single calls. */
export function rulingsOf(setting: unknown): {
  readonly toolApproval: unknown;
  readonly rulings: ReadonlyMap<string, boolean>;
} {
  const rulings = new Map<string, boolean>();
  const note = (id: string, status: Status): Status => {
    const type = typeof status === "string" ? status : status?.type;
    // A model may give two calls the same id: what is said of the harmless one must not count for the other.
    if (type !== undefined) rulings.set(id, type === "user-approval" || rulings.get(id) === true);
    return type === "user-approval" ? undefined : status;
  };
  const given = setting as ToolApproval;
  if (typeof given === "function") {
    const toolApproval = async (call: { toolCall: { toolCallId: string } }) =>
      note(call.toolCall.toolCallId, await given(call));
    return { toolApproval, rulings };
  }
  const each = Object.entries(given).map(([tool, rule]) => [
    tool,
    async (input: unknown, options: { toolCallId: string }) =>
      note(options.toolCallId, typeof rule === "function" ? await rule(input, options) : rule),
  ]);
  return { toolApproval: Object.fromEntries(each) as unknown, rulings };
}
