// Commands that read the store of a gateway that does not run: a store in memory has nothing to read.
import { expect, it } from "vitest";
import memory from "../../../plugins/stores/memory.ts";
import { rejectVolatileStore } from "../../../src/cli/support/store-access.ts";

const config = (use: string, definition: object) => ({ store: { use, definition } }) as never;

it.each([
  ["the built-in one", "memory", memory],
  ["one of another author", "./mine.ts", { isVolatile: true }],
])("a store in memory needs a running gateway: %s", (_, use, definition) => {
  expect(() => rejectVolatileStore(config(use, definition))).toThrow(
    `The store ${use} exists only in a running gateway`,
  );
});

it("a store on disk does not, whatever it is called", () => {
  expect(() => rejectVolatileStore(config("memory", {}))).not.toThrow();
});
