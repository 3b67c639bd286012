import { describe, expect, it } from "vitest";
import { decode, encode } from "./codec.ts";
import { hasCode, PawlError, RetryableError } from "./errors.ts";
import { MAX_DEPTH } from "./value-limits.ts";

function trip(value: unknown): unknown {
  return decode(encode(value));
}

class Point {
  x = 1;
  y = 2;
}

describe("errors", () => {
  class HttpError extends Error {
    override name = "HttpError";
    status = 503;
    headers = new Map([["retry-after", "3"]]);
  }
  class Nameless extends TypeError {}

  it("B66 keeps name, message, cause, code and fields", () => {
    const cause = Object.assign(new RangeError("inner"), { code: "ERANGE", at: new Date(0) });
    const back = trip(new Error("outer", { cause })) as Error & { cause: Error & { code: string; at: Date } };
    expect(back).toBeInstanceOf(Error);
    expect([back.name, back.message]).toEqual(["Error", "outer"]);
    expect(back.cause).toBeInstanceOf(RangeError);
    expect([back.cause.message, back.cause.code, back.cause.at]).toEqual(["inner", "ERANGE", new Date(0)]);
    expect(Object.keys(back)).toEqual([]);
  });

  it("B66 keeps the name of a subclass, whether set or not", () => {
    const back = trip(new HttpError("down")) as HttpError;
    expect([back.name, back.message, back.status, back.headers]).toEqual([
      "HttpError",
      "down",
      503,
      new HttpError().headers,
    ]);
    expect(back.constructor).toBe(Error);
    expect(String(back)).toBe("HttpError: down");
    expect((trip(new Nameless("x")) as Error).name).toBe("Nameless");
  });

  it("B66 keeps every class of JavaScript's own", () => {
    for (const Class of [Error, EvalError, RangeError, ReferenceError, SyntaxError, TypeError, URIError]) {
      expect((trip(new Class("m")) as Error).constructor).toBe(Class);
    }
  });

  it("B66 keeps the errors of an AggregateError", () => {
    const back = trip(new AggregateError([new TypeError("a"), "b", undefined], "all failed")) as AggregateError;
    expect(back).toBeInstanceOf(AggregateError);
    expect(back.message).toBe("all failed");
    expect(back.errors).toEqual([new TypeError("a"), "b", undefined]);
    expect(Object.keys(back)).toEqual([]);
  });

  it("keeps Pawl's own errors, recognisable by their code", () => {
    const back = trip(
      new PawlError("lease_lost", "gone", { fields: { run: "r1" }, cause: new Error("why") }),
    ) as PawlError;
    expect(hasCode(back, "lease_lost")).toBe(true);
    expect([back.name, back.message, back.fields]).toEqual(["PawlError", "gone", { run: "r1" }]);
    expect(back.cause).toEqual(new Error("why"));
    expect(trip(new RetryableError("later", { retryAfter: "3s" }))).toMatchObject({
      name: "RetryableError",
      retryAfter: "3s",
    });
  });

  it("keeps a DOMException and a code that is inherited", () => {
    const abort = trip(AbortSignal.abort().reason) as Error & { code: number };
    expect([abort.name, abort.code]).toEqual(["AbortError", 20]);
    class Coded extends Error {
      get code(): string {
        return "E_CODED";
      }
    }
    expect(trip(new Coded("c"))).toMatchObject({ name: "Coded", code: "E_CODED" });
  });

  it("has no stack of the reader's", () => {
    const back = trip(new TypeError("m")) as Error;
    expect(back.stack).toBe("TypeError: m");
    expect(encode(new TypeError("m"))).not.toContain("codec.test");
  });

  it("B66 leaves out what cannot be stored, never the error", () => {
    const error = Object.assign(new Error("request failed"), {
      code: "ECONNRESET",
      request: { socket: new Point(), agent: () => 1 },
      config: { retry: () => 1 },
      data: { id: 7 },
    });
    Object.assign(error, { self: error, cause: error });
    Object.defineProperty(error, "late", {
      enumerable: true,
      get() {
        throw new Error("no");
      },
    });
    const back = trip({ error }) as { error: Error };
    expect({ ...back.error }).toEqual({ code: "ECONNRESET", data: { id: 7 } });
    expect(Object.hasOwn(back.error, "cause")).toBe(false);
    expect(trip(Object.assign(new Error("m"), { name: Symbol("n"), message: { toString: null } }))).toBeInstanceOf(
      Error,
    );
  });

  it("leaves out a field that alone is over the limit", () => {
    const error = Object.assign(new Error("too much"), { body: "x".repeat(2000), status: 1 });
    expect(decode(encode(error, { maxBytes: 1000 }))).toMatchObject({ message: "too much", status: 1 });
    expect(encode(error, { maxBytes: 1000 }).length).toBeLessThan(200);
  });

  it("cuts a chain of causes at the depth limit", () => {
    let error = new Error("0");
    for (let i = 1; i < 1000; i++) error = new Error(String(i), { cause: error });
    let back = trip(error) as Error;
    let length = 1;
    for (; back.cause !== undefined; back = back.cause as Error) length += 1;
    expect(length).toBe(MAX_DEPTH);
  });

  it("gives the same text again after a round trip", () => {
    for (const error of [
      new HttpError("a"),
      new Nameless("b"),
      new AggregateError([1], "c"),
      new PawlError("closed", "d"),
    ]) {
      expect(encode(trip(error))).toBe(encode(error));
    }
  });

  it("takes fields with hostile names as data", () => {
    const text =
      '{"$error":{"name":"__proto__","message":"m","fields":{"__proto__":{"x":1},"toString":1,"stack":"s"}}}';
    const back = decode(text) as Error;
    expect(Object.getPrototypeOf(back)).toBe(Error.prototype);
    expect(Object.getOwnPropertyDescriptor(back, "__proto__")?.value).toEqual({ x: 1 });
  });

  it("gives up on errors that are made to be tried for ever", () => {
    let error = new Error("leaf");
    for (let i = 0; i < 30; i++) {
      const bad = { error, callback() {} };
      error = Object.assign(new Error(String(i)), { left: bad, right: bad });
    }
    expect(() => encode(error)).toThrow(expect.objectContaining({ code: "not_serializable" }));
  });
});
