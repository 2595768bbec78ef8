// Client requests and upstream responses may cause any internal error: the engine's message reaches
// no client.
import * as fc from "fast-check";
import { expect, it } from "vitest";
import { startBackend, startTestServices } from "../../kit/test-services.ts";
import { createToyProtocol } from "../toy-protocol.ts";
import { trialCount } from "../../kit/law-effort.ts";
import { codePoint } from "../../kit/code-points.ts";

const ENGINE =
  /Cannot (read|set|convert)|is not (a function|iterable|defined|valid JSON)|reading '|Unexpected (token|end|non)|Expected (property|double|',')|in JSON|Bad control|Unterminated|of undefined/;

const text = fc.oneof(
  fc.string({ unit: codePoint, maxLength: 40 }),
  fc.constantFrom(
    "{",
    "[",
    '{"model":',
    '{"model":"p/m",}',
    "{'model':1}",
    '{"a":1 "b":2}',
    '"x',
    "tru",
    "01",
    '{"a":"\n"}',
    '{"a":"\\x"}',
    "NaN",
  ),
  fc.json().map((json) => json.slice(0, -1)),
);

it("error messages are the gateway's own, for any body and any response", async () => {
  let answer = "";
  await using up = await startBackend(
    (_, res) => void res.writeHead(200, { "content-type": "application/json" }).end(answer),
  );
  await using s = await startTestServices({
    frontend: createToyProtocol(),
    providers: {
      p: { endpoints: [{ protocol: createToyProtocol(), base: up.base, auth: "none" as const }] },
    },
  });
  await fc.assert(
    fc.asyncProperty(text, text, async (body, said) => {
      const headers = { "content-type": "application/json" };
      const sent = await fetch(`${s.url}/toy`, { method: "POST", headers, body });
      expect(await sent.text()).not.toMatch(ENGINE);
      answer = said;
      const got = await s.ask({ model: "p/m", text: "x" });
      if (got.status !== 200) expect(await got.text()).not.toMatch(ENGINE);
    }),
    { numRuns: trialCount(150) },
  );
  for (const { message } of s.log) expect(message).not.toMatch(ENGINE);
});
