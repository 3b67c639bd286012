import { messageOf } from "../base/errors.ts";
import type { AnyEventType, EventType, SessionEvent } from "./session-event.ts";
import { lineageOf } from "./session-event.ts";

export interface SubscribeOptions {
  /** Hear only of this session: of events whose payload has it as `session`. Default: of all. */
  readonly session?: { readonly id: string };
}

/** A handler that threw. The others were called all the same. */
export interface HandlerFailure {
  readonly type: string;
  readonly message: string;
  readonly error: unknown;
}

/** What became of an event. */
export interface Published {
  /** How many handlers took it without a failure. */
  readonly delivered: number;
  readonly failures: readonly HandlerFailure[];
}

interface Subscription {
  readonly type: AnyEventType;
  readonly session: object | null;
  readonly handle: (event: SessionEvent<never>) => unknown;
}

/** Tells whoever listens what an agent does. Handlers run one after the other, in the order in which they subscribed. */
export class EventBus {
  readonly #subscriptions = new Set<Subscription>();

  /** Calls `handler` for every event of the type, and of types that extend it. Gives the function that ends it. */
  subscribe<P>(
    type: EventType<P>,
    handler: (event: SessionEvent<P>) => unknown,
    options: SubscribeOptions = {},
  ): () => void {
    const subscription: Subscription = { type, session: options.session ?? null, handle: handler };
    this.#subscriptions.add(subscription);
    return () => {
      this.#subscriptions.delete(subscription);
    };
  }

  /** Resolves when every handler has answered. A handler that throws is in the result and stops nobody. */
  async publish(event: SessionEvent): Promise<Published> {
    const types = new Set(lineageOf(event));
    const failures: HandlerFailure[] = [];
    let delivered = 0;
    for (const subscription of [...this.#subscriptions]) {
      if (!types.has(subscription.type.name) || !isMeant(subscription, event)) continue;
      // An earlier handler may have ended it.
      if (!this.#subscriptions.has(subscription)) continue;
      try {
        await subscription.handle(event as SessionEvent<never>);
        delivered += 1;
      } catch (error) {
        failures.push({ type: subscription.type.name, message: messageOf(error), error });
      }
    }
    return { delivered, failures };
  }
}

/** What is logged of a handler that threw. */
export function handlerFailed(type: string, message: string): string {
  return `A handler of "${type}" has failed: ${message}. The others were called.`;
}

function isMeant({ session }: Subscription, { payload }: SessionEvent): boolean {
  if (session === null) return true;
  return typeof payload === "object" && payload !== null && "session" in payload && payload.session === session;
}
