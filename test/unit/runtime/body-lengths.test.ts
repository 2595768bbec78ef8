// The length of a text is checked before any other work, in constant time: bodies may have 32 MB of
// text.
import { expect, it } from "vitest";
import { createBodyValidator } from "../../../src/runtime/generation/mount-endpoint.ts";
import { chatCompletions } from "tollgate/protocols/chat-completions";
import { responses } from "tollgate/protocols/responses";
import { measure } from "../../kit/process/cpu-time.ts";

const LONG = "ab".repeat(15_000_000);

it.each([
  ["chat-completions", chatCompletions(), { messages: [{ role: "user", content: "a" }] }],
  ["responses", responses(), { input: "a" }],
] as const)("%s rejects a model name of 30 MB quickly", (_name, protocol, least) => {
  const check = createBodyValidator(protocol.server!.schema);
  expect(check({ ...least, model: "p/m" })).toBeUndefined();
  const fewest = Math.min(
    ...Array.from({ length: 3 }, () => {
      const { processor } = measure(() => expect(check({ ...least, model: LONG })).toBeDefined());
      return processor;
    }),
  );
  expect(fewest).toBeLessThan(15);
});
