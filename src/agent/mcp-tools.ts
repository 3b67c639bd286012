// Tools of an MCP server
// Each becomes a durable tool: its class comes from what the server says about it, which decides how it is recorded and who is asked before.
import { PawlError } from "../base/errors.ts";
import type { EffectClass } from "../core/journal.ts";
import type { ApprovalPolicy, Tool, ToolResult } from "./tool.ts";
import { tool } from "./tool.ts";

/** A connected MCP client, as far as it is used: `Client` of @modelcontextprotocol/client. */
export interface McpClient {
  listTools(params?: { readonly cursor?: string }): Promise<{
    readonly tools: readonly McpTool[];
    readonly nextCursor?: string | undefined;
  }>;
  callTool(
    params: { readonly name: string; readonly arguments?: Record<string, unknown> },
    options?: { readonly signal?: AbortSignal; readonly timeout?: number },
  ): Promise<McpResult>;
}

/** A tool as an MCP server describes it. */
export interface McpTool {
  readonly name: string;
  readonly description?: string | undefined;
  readonly inputSchema: object;
  readonly annotations?: McpAnnotations | undefined;
}

/** What a server says about a tool. It is the server's word: one that is not trusted needs a `class` of yours. */
export interface McpAnnotations {
  readonly readOnlyHint?: boolean | undefined;
  readonly destructiveHint?: boolean | undefined;
  readonly idempotentHint?: boolean | undefined;
  readonly openWorldHint?: boolean | undefined;
}

/** What an MCP tool answers. */
export interface McpResult {
  readonly content?: readonly unknown[] | undefined;
  readonly structuredContent?: unknown;
  readonly isError?: boolean | undefined;
}

export interface McpToolsOptions {
  /** The names of the tools to take. Default: all. */
  readonly allow?: readonly string[];
  /**
   * What a tool may change; then nothing counts that the server says about it. Default: what the server says: "read" for those that only read, "write"
   * for those that may be repeated, else "execute".
   */
  readonly class?: (tool: McpTool) => EffectClass;
  /** Who is asked before a tool begins. Default: the agent's policy for its class. */
  readonly approval?: ApprovalPolicy | false | ((tool: McpTool) => ApprovalPolicy | false | undefined);
  /** What the names of the tools begin with, where two servers have the same. Default: nothing. */
  readonly prefix?: string;
}

/**
 * The tools of a connected MCP server, as tools for agents. The list is read once: a worker that resumes a run needs the same server. What names of models'
 * tools cannot have, such as a dot, becomes "_".
 *
 * ```ts
 * const client = new Client({ name: "helper", version: "1.0.0" });
 * await client.connect(new StdioClientTransport({ command: "my-server" }));
 * const tools = await mcpTools(client, { allow: ["search", "publish"] });
 * ```
 */
export async function mcpTools(client: McpClient, options: McpToolsOptions = {}): Promise<Tool[]> {
  const { allow } = options;
  const listed = await listOf(client);
  const missing = (allow ?? []).filter((name) => !listed.some((one) => one.name === name));
  if (missing.length > 0)
    throw new PawlError(
      "invalid_argument",
      `The MCP server has no tool ${missing.map((name) => `"${name}"`).join(", ")}. It has: ${listed.map(({ name }) => name).join(", ") || "none"}.`,
      { fields: { field: "allow", missing } },
    );
  return listed
    .filter(({ name }) => allow === undefined || allow.includes(name))
    .map((one) => toolOf(client, one, options));
}

async function listOf(client: McpClient): Promise<readonly McpTool[]> {
  const pages: (readonly McpTool[])[] = [];
  const seen = new Set<string | undefined>();
  // A server that sends us round in a circle has told all that it has.
  for (let cursor: string | undefined; !seen.has(cursor); ) {
    seen.add(cursor);
    if (pages.length === MOST_PAGES)
      throw new PawlError("too_large", `The MCP server lists its tools on more than ${MOST_PAGES} pages.`);
    const page = await client.listTools(cursor === undefined ? undefined : { cursor });
    pages.push(page.tools);
    cursor = page.nextCursor;
  }
  return pages.flat();
}

const MOST_PAGES = 1000;

function toolOf(
  client: McpClient,
  described: McpTool,
  { class: classOf, approval, prefix = "" }: McpToolsOptions,
): Tool {
  const { name, description, inputSchema, annotations } = described;
  const policy = typeof approval === "function" ? approval(described) : approval;
  return tool({
    name: `${prefix}${name}`.replaceAll(/[^A-Za-z0-9_-]/g, "_"),
    description: description || name,
    class: (classOf ?? classFrom)(described),
    input: { jsonSchema: inputSchema },
    // Whoever gives the class does not go by the server's word: neither does what becomes of a call after a crash.
    ...(classOf === undefined && annotations?.idempotentHint === true && { idempotent: "natural" as const }),
    ...(policy !== undefined && { approval: policy }),
    // The step has the time limit; the client's own would only be another one.
    run: async (params, { signal }) =>
      resultOf(await client.callTool({ name, arguments: params }, { signal, timeout: DAY_MS })),
  }) as Tool;
}

const DAY_MS = 86_400_000;

function classFrom({ annotations }: McpTool): EffectClass {
  if (annotations?.readOnlyHint === true) return "read";
  return annotations?.idempotentHint === true ? "write" : "execute";
}

/** What the model is told is the text; what is structured is the value. */
function resultOf(answer: McpResult | undefined): ToolResult {
  const { content, structuredContent, isError } = answer ?? {};
  const text = (content ?? [])
    .map(textOf)
    .filter((one) => one !== "")
    .join("\n");
  const value = structuredContent ?? (text === "" ? undefined : text);
  const isDone = isError !== true;
  const message = text === "" ? (JSON.stringify(structuredContent) ?? (isDone ? "Done." : "It failed.")) : text;
  return { message, ...(value !== undefined && { value }), success: isDone };
}

function textOf(part: unknown): string {
  if (typeof part !== "object" || part === null || !("type" in part)) return "";
  if (part.type === "text" && "text" in part) return String(part.text);
  return `(${String(part.type)} that is not shown)`;
}
