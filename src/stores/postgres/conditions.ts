import type { PgValue } from "./driver.ts";

/** Conditions that hold together, with their values. */
export class Conditions {
  readonly #texts = ["true"];
  readonly values: PgValue[] = [];

  /** Leaves it out where a value is absent. */
  add(text: string, ...given: readonly (PgValue | undefined)[]): void {
    if (given.some((value) => value === undefined)) return;
    const places = (given as PgValue[]).map((value) => this.bind(value));
    this.#texts.push(text.replaceAll("?", () => places.shift() ?? ""));
  }

  /** Takes a value in; returns what stands for it in the text. */
  bind(value: PgValue): string {
    return `$${this.values.push(value)}`;
  }

  get text(): string {
    return this.#texts.join(" and ");
  }
}
