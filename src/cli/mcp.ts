import { readdirSync } from "node:fs";
import { join } from "node:path";
import type { Command } from "commander";
import { PawlError } from "../base/errors.ts";
import { packageVersion } from "../client/package-version.ts";
import { action, addCommand } from "./command.ts";
import { EXIT } from "./exit-codes.ts";
import { playbookTools, type Tool } from "./mcp-tools.ts";
import { PLAYBOOK_STORE_HELP, playbookStore } from "./playbook-store.ts";

interface McpOptions {
  readonly as: string;
}

export function addMcp(program: Command): void {
  addCommand(
    program,
    "mcp [files...]",
    "serve playbooks to a coding agent, as an MCP server on stdin and stdout",
    ["pawl mcp playbooks/release.yaml", "pawl mcp --as builder --store file:work playbooks/*.yaml"],
    PLAYBOOK_STORE_HELP,
  )
    .option("--as <name>", "who the agent is in the record: whoever does the work may not approve of it", "agent")
    .addHelpText(
      "after",
      "\nWithout files, those of the folder playbooks. Needs the package @modelcontextprotocol/server. It has no tool that approves.",
    )
    .action(
      action<McpOptions, [string[]]>(async ({ options }, files) => {
        const url = playbookStore(options.store);
        await serve(playbookTools({ url, files: files.length > 0 ? () => files : playbooksHere, by: options.as }));
        return EXIT.ok;
      }),
    );
}

/** Looked for each time: a file that was added counts at once. */
function playbooksHere(): string[] {
  try {
    return readdirSync("playbooks")
      .filter((name) => /\.(ya?ml|json)$/i.test(name))
      .sort()
      .map((name) => join("playbooks", name));
  } catch {
    return [];
  }
}

/** Until whoever asks has gone; what is under way then is finished. */
async function serve(tools: readonly Tool[]): Promise<void> {
  const { McpServer, fromJsonSchema, serveStdio } = await loadPackage();
  const calls = new Set<Promise<unknown>>();
  const made = () => {
    const server = new McpServer(
      { name: "pawl", version: packageVersion() },
      { capabilities: { tools: {} }, instructions: INSTRUCTIONS },
    );
    for (const { name, title, description, isReadOnly, schema, call } of tools) {
      server.registerTool(
        name,
        {
          title,
          description,
          inputSchema: fromJsonSchema<Record<string, unknown>>(schema),
          annotations: { readOnlyHint: isReadOnly, destructiveHint: false, openWorldHint: false },
        },
        async (given) => {
          const answering = call(given);
          calls.add(answering);
          const { text, content, isError } = await answering.finally(() => calls.delete(answering));
          return { content: [{ type: "text", text }], structuredContent: content, ...(isError && { isError }) };
        },
      );
    }
    return server;
  };
  const gone = new Promise((resolve) => process.stdin.once("end", resolve).once("close", resolve));
  const handle = serveStdio(made);
  await gone;
  await Promise.allSettled(calls);
  await handle.close();
}

const INSTRUCTIONS = [
  "Playbooks are durable: what is done is recorded, and any conversation can go on where another one stopped.",
  "Begin with playbook_next (or playbook_list, if you do not know the key) and believe its answer rather than your memory of what was done.",
  "For each step: playbook_begin, do what its instructions say, playbook_done with the files it must leave, or playbook_fail with the reason.",
  "Steps cannot be skipped or done out of order. Approvals are given by people, never through these tools: when one is waited for, tell the user and stop.",
].join(" ");

async function loadPackage() {
  try {
    const [{ McpServer, fromJsonSchema }, { serveStdio }] = await Promise.all([
      import("@modelcontextprotocol/server"),
      import("@modelcontextprotocol/server/stdio"),
    ]);
    return { McpServer, fromJsonSchema, serveStdio };
  } catch (cause) {
    throw new PawlError(
      "invalid_argument",
      "`pawl mcp` needs the package `@modelcontextprotocol/server`, which could not be loaded. Install it with `npm install @modelcontextprotocol/server@2`.",
      { cause },
    );
  }
}
