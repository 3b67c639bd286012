import { describe, expect, it } from "vitest";
import type { ApproveOptions } from "./approval.ts";
import { approvalSpec, requestedAt } from "./approval-spec.ts";
import { closesAt, nextDue, nextEvent } from "./approval-times.ts";

const HOUR = 3_600_000;
const GOOD: ApproveOptions = { action: { tool: "t", arguments: { n: 1 } }, approvers: ["ann"] };

function fieldOf(options: object): unknown {
  try {
    approvalSpec("a", { ...GOOD, ...options } as ApproveOptions);
  } catch (error) {
    const { code, fields, message } = error as { code: string; fields: Record<string, unknown>; message: string };
    if (code === "invalid_argument") expect(message).toContain(String(fields["field"] ?? fields["what"]));
    return fields["field"] ?? fields["what"] ?? code;
  }
  return null;
}

describe("what ctx.approve accepts", () => {
  it("has defaults: 48 hours, medium risk, one person, no approval by policy", () => {
    expect(approvalSpec("a", GOOD)).toMatchObject({
      timeoutMs: 48 * HOUR,
      risk: "medium",
      kind: "authorisation",
      quorum: 1,
      fourEyes: false,
      levels: [],
      maxDenials: { action: 3, tool: Number.POSITIVE_INFINITY },
      onDenied: "compensate",
      onExpired: "escalate",
      onChanges: "compensate",
    });
  });

  it("X-23 leaves out who may not decide: somebody must be left", () => {
    expect(fieldOf({ notBy: "ann" })).toBe("notBy");
    expect(fieldOf({ notBy: ["ann"] })).toBe("approvers");
    expect(fieldOf({ notBy: ["ann"], approvers: ["ann", "role:editor"] })).toBe(null);
    expect(fieldOf({ fourEyes: true })).toBe("actor");
    expect(approvalSpec("a", { ...GOOD, notBy: ["bob", "bob"] })).toMatchObject({ notBy: ["bob"] });
    expect(approvalSpec("a", { ...GOOD, notBy: [] })).not.toHaveProperty("notBy");
  });

  it("T-24 refuses an action of escalation that it does not know, and names the field", () => {
    expect(
      fieldOf({
        escalate: [
          { after: "1h", action: "notify" },
          { after: "2h", action: "ignore" },
        ],
      }),
    ).toBe("escalate[1].action");
    expect(fieldOf({ escalate: [{ after: "1h" }] })).toBe("escalate[0].action");
  });

  it("X-28 T-24 checks the service levels of every risk, and names the one with the mistake", () => {
    const level = (action: string) => ({ timeout: "1h", escalate: [{ after: "10m", action }] });
    expect(fieldOf({ risk: "low", serviceLevels: { low: level("notify"), high: level("ignore") } })).toBe(
      "serviceLevels.high.escalate[0].action",
    );
    expect(fieldOf({ autoApprove: { maxRisk: "low" }, serviceLevels: { low: level("approve") } })).toBe(null);
    expect(fieldOf({ autoApprove: { maxRisk: "low" }, serviceLevels: { high: level("approve") } })).toBe(
      "serviceLevels.high.escalate[0].action",
    );
    expect(fieldOf({ serviceLevels: { urgent: {} } })).toBe("serviceLevels.urgent");
    expect(fieldOf({ serviceLevels: { low: { after: "1h" } } })).toBe("serviceLevels.low");
    expect(approvalSpec("a", { ...GOOD, serviceLevels: { medium: { timeout: "1h" } } }).timeoutMs).toBe(HOUR);
    expect(approvalSpec("a", { ...GOOD, timeout: "2h", serviceLevels: { high: {} } }).timeoutMs).toBe(2 * HOUR);
  });

  it("S4-36 C-21 refuses approval by policy unless it is allowed, above its risk, and for high risks in any case", () => {
    const escalate = [{ after: "1h", action: "approve" }];
    expect(fieldOf({ escalate })).toBe("escalate[0].action");
    expect(fieldOf({ escalate, autoApprove: false, risk: "low" })).toBe("escalate[0].action");
    expect(fieldOf({ escalate, autoApprove: { maxRisk: "low" }, risk: "medium" })).toBe("escalate[0].action");
    expect(fieldOf({ escalate, autoApprove: { maxRisk: "high" }, risk: "high" })).toBe("autoApprove.maxRisk");
    expect(fieldOf({ escalate, autoApprove: { maxRisk: "medium" }, risk: "high" })).toBe("escalate[0].action");
    expect(fieldOf({ escalate, autoApprove: { maxRisk: "medium" }, risk: "medium" })).toBe(null);
  });

  it.each([
    ["action", { action: undefined }],
    ["maxDenials.action", { maxDenials: { action: 0 } }],
    ["maxDenials.tool", { maxDenials: { tool: 1.5 } }],
    ["action", { action: { tool: "t" } }],
    ["action.resources", { action: { tool: "t", arguments: 1, resources: [1] } }],
    ["approvers", { approvers: [] }],
    ["approvers", { approvers: "ann" }],
    ["approvers", { approvers: ["ann", "policy"] }],
    ["approvers", { approvers: ["ann", "ann"], quorum: 2 }],
    ["approvers", { approvers: ["bot"], actor: "bot", fourEyes: true }],
    ["actor", { fourEyes: true }],
    ["quorum", { quorum: 0 }],
    ["quorum", { quorum: 1.5 }],
    ["risk", { risk: "huge" }],
    ["kind", { kind: "wish" }],
    ["onDenied", { onDenied: "escalate" }],
    ["onExpired", { onExpired: "autoApprove" }],
    ["onChanges", { onChanges: "retry" }],
    ["timeout", { timeout: 0 }],
    ["remind", { remind: "1s" }],
    ["escalate", { escalate: { after: "1h" } }],
    ["escalate[0].to", { escalate: [{ after: "1h", action: "escalate" }] }],
    ["escalate[0].to", { escalate: [{ after: "1h", action: "notify", to: ["bob"] }] }],
    ["escalate[0].revoke", { escalate: [{ after: "1h", action: "deny", revoke: true }] }],
    [
      "escalate[1].after",
      {
        escalate: [
          { after: "2h", action: "notify" },
          { after: "2h", action: "deny" },
        ],
      },
    ],
    ["escalate[0].after", { timeout: "1h", onExpired: "fail", escalate: [{ after: "2h", action: "notify" }] }],
  ])("refuses at the call what could never work: %s", (field, options) => {
    expect(fieldOf(options)).toBe(field);
  });
});

it("refuses arguments that cannot be recorded, and names the path to them", () => {
  const action = { tool: "t", arguments: { call: () => {} } };
  expect(() => approvalSpec("a", { ...GOOD, action })).toThrow(/action\.arguments of approval "a"\.call/);
});

describe("the times of an approval", () => {
  const requested = (options: Partial<ApproveOptions>) =>
    requestedAt(approvalSpec("a", { ...GOOD, ...options }), 0, {
      id: "i",
      hash: "h",
      digest: "d",
      denials: { action: 0, tool: 0 },
    });

  it("S4-33 fall due one after the other, each once, a level before what falls due with it", () => {
    const request = requested({
      remind: "12h",
      escalate: [
        { after: "24h", action: "notify" },
        { after: "36h", action: "escalate", to: ["bob"] },
      ],
    });
    const seen: string[] = [];
    for (let until = 0; ; ) {
      const event = nextEvent(request, until, until);
      if (event === null) break;
      expect(nextDue(request, until)).toBe(event.due);
      seen.push(`${event.due / HOUR} ${event.kind}`);
      until = event.due;
    }
    expect(seen).toEqual([
      "12 reminder",
      "24 level",
      "36 level",
      "48 timeout",
      "60 reminder",
      "72 reminder",
      "84 expiry",
    ]);
    expect(closesAt(request)).toBe(84 * HOUR);
  });

  it("of several reminders that have passed, the last one stands for all, and no level is passed over", () => {
    const request = requested({ remind: "5h", escalate: [{ after: "24h", action: "notify" }] });
    const late = 40 * HOUR;
    expect(nextEvent(request, 0, late)).toMatchObject({ kind: "reminder", due: 20 * HOUR });
    expect(nextEvent(request, 20 * HOUR, late)).toMatchObject({ kind: "level", due: 24 * HOUR });
    expect(nextEvent(request, 24 * HOUR, late)).toMatchObject({ kind: "reminder", due: 40 * HOUR });
  });

  it("people may decide until a level does", () => {
    const request = requested({ escalate: [{ after: "12h", action: "deny" }] });
    expect(closesAt(request)).toBe(12 * HOUR);
  });
});
