// Client text only selects entries that a table contains: in every position of a body,
// "constructor" and "__proto__" are as unknown as any other name, in every half of every codec.
import { describe, expect, it } from "vitest";
import { getFault, type Json, type JsonObject } from "tollgate/plugin";
import { createCallContext, createOutgoing, encodeOutgoing } from "tollgate/testing";
import { chats } from "../generators/codecs.ts";
import { bodies } from "./requests.ts";

/** The same body, once for each of its strings, with the name in its place. */
function* placed(value: Json, word: string): Generator<Json> {
  if (typeof value === "string") yield word;
  if (typeof value !== "object" || value === null) return;
  for (const key of Object.keys(value))
    for (const inner of placed((value as JsonObject)[key]!, word))
      yield Array.isArray(value)
        ? (value as Json[]).with(Number(key), inner)
        : { ...(value as JsonObject), [key]: inner };
}

const targets = Object.values(chats);

describe.each(Object.keys(bodies))("a request of %s", (id) => {
  it.each(["__proto__", "constructor", "toString"])("with %s as text", (word) => {
    const { server, client } = chats[id]!;
    for (const [shape, made] of Object.entries(bodies[id]!))
      for (const body of placed(made(2), word) as Generator<JsonObject>) {
        const tried = (run: () => unknown) => {
          try {
            return run();
          } catch (error) {
            if (!getFault(error))
              throw new Error(`${shape}: ${JSON.stringify(body)}`, { cause: error });
            return undefined;
          }
        };
        const seen = tried(() => server!.analyze(body)) as
          | { features: readonly unknown[] }
          | undefined;
        for (const feature of seen?.features ?? []) expect(typeof feature, shape).toBe("string");
        tried(() => client!.prepare?.(createOutgoing(body), createCallContext()));
        const request = tried(() => server!.decodeRequest(body, "generate"));
        if (request === undefined) continue;
        for (const target of targets) {
          const left = tried(
            () => encodeOutgoing(target.client!, request as never, createCallContext()).body,
          );
          // Outgoing data only: no function, and no inherited property of a table.
          if (left !== undefined) expect(functionIn(left), `${shape} to ${target.id}`).toBe(false);
        }
      }
  });
});

const functionIn = (value: unknown): boolean =>
  typeof value === "function" ||
  value === Object.prototype ||
  (typeof value === "object" && value !== null && Object.values(value).some(functionIn));

describe("an envelope that a client wrote itself", () => {
  const forged = (k: string, d: string, b?: string): string =>
    `tg1.${Buffer.from(JSON.stringify({ o: "chat-completions", k, d, b })).toString("base64url")}`;
  it.each([
    ["extra_content", "no JSON", "text"],
    ["extra_content", "no JSON", "call"],
    ["extra_content", `{"a":${"[".repeat(20_000)}${"]".repeat(20_000)}}`, "call"],
    ["reasoning_details", "{}", undefined],
    ["reasoning_details", "no JSON", undefined],
  ])("%s", (kind, data, of) => {
    const request = chats["messages"]!.server!.decodeRequest(
      {
        model: "m",
        messages: [
          {
            role: "assistant",
            content: [
              { type: "text", text: "x" },
              { type: "tool_use", id: "c", name: "f", input: {} },
              { type: "redacted_thinking", data: forged(kind, data, of) },
            ],
          },
          { role: "user", content: "Hi" },
        ],
      },
      "generate",
    );
    for (const target of targets)
      expect(
        JSON.stringify(encodeOutgoing(target.client!, request as never, createCallContext()).body),
      ).not.toContain("no JSON");
  });
});
