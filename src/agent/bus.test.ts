import { describe, expect, it } from "vitest";
import { EventBus } from "./bus.ts";
import { Session } from "./session.ts";
import { eventType } from "./session-event.ts";

const Said = eventType<string>("Said");
const Shouted = eventType<string>("Shouted", { extends: Said });
const Done = eventType<{ readonly session: Session }>("Done");

describe("the bus", () => {
  it("S1-28 calls handlers of the type in order, one after the other", async () => {
    const bus = new EventBus();
    const heard: string[] = [];
    bus.subscribe(Said, async ({ payload }) => {
      heard.push(`first begins ${payload}`);
      await Promise.resolve();
      heard.push("first ends");
    });
    bus.subscribe(Done, () => heard.push("never"));
    bus.subscribe(Said, ({ payload }) => heard.push(`second ${payload}`));
    expect(await bus.publish(Said("a"))).toEqual({ delivered: 2, failures: [] });
    expect(heard).toEqual(["first begins a", "first ends", "second a"]);
  });

  it("S1-28 a handler that throws is reported and stops nobody", async () => {
    const bus = new EventBus();
    const heard: string[] = [];
    const error = new Error("no");
    bus.subscribe(Said, () => {
      throw error;
    });
    bus.subscribe(Said, () => Promise.reject(error));
    bus.subscribe(Said, ({ payload }) => heard.push(payload));
    const failure = { type: "Said", message: "no", error };
    expect(await bus.publish(Said("a"))).toEqual({ delivered: 1, failures: [failure, failure] });
    expect(heard).toEqual(["a"]);
  });

  it("S1-28 T-10 whoever has unsubscribed hears nothing any more, not even of the event at hand", async () => {
    const bus = new EventBus();
    const heard: string[] = [];
    const second = { end: () => {} };
    const end = bus.subscribe(Said, () => {
      heard.push("first");
      second.end();
    });
    second.end = bus.subscribe(Said, () => heard.push("second"));
    await bus.publish(Said("a"));
    end();
    end();
    expect(await bus.publish(Said("b"))).toEqual({ delivered: 0, failures: [] });
    expect(heard).toEqual(["first"]);
  });

  it("S1-28 S1-10 a type is heard of with those that extend it", async () => {
    const bus = new EventBus();
    const heard: string[] = [];
    bus.subscribe(Said, ({ payload }) => heard.push(`said ${payload}`));
    bus.subscribe(Shouted, ({ payload }) => heard.push(`shouted ${payload}`));
    await bus.publish(Shouted("a"));
    await bus.publish(Said("b"));
    expect(heard).toEqual(["said a", "shouted a", "said b"]);
  });

  it("T-10 S1-27 a subscription for one session hears of no other, though it has the same id", async () => {
    const bus = new EventBus();
    const [own, other] = [0, 1].map((createdAt) => new Session({ id: "s", createdAt })) as [Session, Session];
    const heard: number[] = [];
    bus.subscribe(Done, ({ payload }) => heard.push(payload.session.createdAt), { session: own });
    await bus.publish(Done({ session: other }));
    await bus.publish(Done({ session: own }));
    expect(heard).toEqual([0]);
  });
});
