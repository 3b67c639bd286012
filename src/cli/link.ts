import type { Command } from "commander";
import { PawlError } from "../base/errors.ts";
import { assertPublicUrl, linkUrl } from "../client/notification-links.ts";
import type { Pawl } from "../client/pawl.ts";
import { findApproval } from "./approvals.ts";
import { action, addCommand, type Call, withClient } from "./command.ts";
import { EXIT, type ExitCode } from "./exit-codes.ts";
import { operatorOf } from "./operator.ts";
import { clean } from "./printable.ts";
import { recorded } from "./recorded.ts";

interface LinkCommandOptions {
  readonly for?: string;
  readonly role?: readonly string[];
  readonly expires?: string;
  readonly signIn?: boolean;
  readonly publicUrl?: string;
  readonly revoke?: boolean;
}

const LOCAL = "http://127.0.0.1:7295";

export function addLink(program: Command): void {
  addCommand(program, "link <id>", "make a link with which one person may decide about an approval, or revoke one", [
    "pawl link aQ2xkY0c --for ann --expires 2h --public-url https://pawl.example.com",
    "pawl link aQ2xkY0c --for role:physician   # whoever opens it signs in",
    "pawl link 0193a7c2-… --revoke",
  ])
    .option("--for <who>", "who decides with it: a person, or a role whose members sign in")
    .option("--role <role...>", "what the person is, such as physician")
    .option("--expires <duration>", "how long it may be used (default: as long as the approval is open)")
    .option("--sign-in", "whoever opens it must sign in")
    .option("--public-url <url>", `where people reach the server (default: ${LOCAL})`)
    .option("--revoke", "the id is that of a link: make it useless")
    .action(
      action<LinkCommandOptions, [string]>((call, id) =>
        withClient(call, (pawl) => (call.options.revoke === true ? revoke(call, pawl, id) : make(call, pawl, id))),
      ),
    );
}

async function make(call: Call<LinkCommandOptions>, pawl: Pawl, text: string): Promise<ExitCode> {
  const { out, options } = call;
  const { for: person, role, expires, signIn, publicUrl = LOCAL } = options;
  if (person === undefined)
    throw new PawlError("invalid_argument", "Say with --for who decides with the link.", {
      fields: { field: "--for" },
    });
  assertPublicUrl(publicUrl);
  const { id } = await findApproval(pawl, text);
  const given = {
    for: person,
    by: operatorOf("link").by,
    ...(role !== undefined && { roles: role }),
    ...(expires !== undefined && { expires }),
    ...(signIn !== undefined && { signIn }),
  };
  const { token, ...link } = await recorded(call, pawl, id, () => pawl.links.create(id, given));
  const url = linkUrl(publicUrl, token);
  if (out.isJson) out.json({ ...link, url });
  else {
    out.note(`Link ${link.id} for ${clean(person)}, until ${link.expiresAt.toISOString()}. It is shown once:`);
    out.print(url);
  }
  return EXIT.ok;
}

async function revoke(call: Call<LinkCommandOptions>, pawl: Pawl, id: string): Promise<ExitCode> {
  const wasOpen = await recorded(call, pawl, id, () => pawl.links.revoke(id, `Revoked by ${operatorOf("link").by}.`));
  if (call.out.isJson) call.out.json({ link: id, revoked: wasOpen });
  else call.out.print(wasOpen ? `Link ${id} is revoked.` : `Link ${id} was of no use before.`);
  return EXIT.ok;
}
