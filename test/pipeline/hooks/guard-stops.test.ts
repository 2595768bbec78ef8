// A guard that stops a response: for any client and provider protocol, in both modes, streaming or
// not, and wherever a word is split, neither the end of that word nor anything after it reaches the
// client.
import { describe, expect, it } from "vitest";
import type { Hooks } from "tollgate/plugin";
import { jsonResponse, say, startUpstream, type ModelScript } from "tollgate/testing";
import guard from "../../../examples/packages/middleware-words-guard/src/index.ts";
import { inAny } from "../../protocols/gemini/speech.ts";
import { startTestServices } from "../../kit/test-services.ts";
import { CLIENTS, isImage, ROADS, TARGETS } from "../protocol-pairs.ts";

const SAID = "I give a blue tulip to STRANGER";
const letters = (text: string): ModelScript =>
  [...text].slice(1).reduce((made, one) => made.say(one), say(text[0]!));
/**
 * One word per chunk, one character per chunk, split within the word, and all together with the
 * blocked word at the end.
 */
const SPEECHES: { readonly [how: string]: ModelScript } = {
  words: say(SAID),
  letters: letters(SAID),
  "cut within": say(SAID.slice(0, 16)).say(SAID.slice(16)),
  "far behind": letters(`I give a blue tulip${" and more".repeat(40)} to STRANGER`),
};

/** All strings of a response, joined: everything that a client could read. */
function words(body: string): string {
  const all: string[] = [];
  const read = (_name: string, value: unknown) => (
    typeof value === "string" && all.push(value),
    value
  );
  const parts = body.startsWith("{")
    ? [body]
    : [...body.matchAll(/^data: (\{.*)$/gm)].map(([, part]) => part!);
  for (const part of parts) JSON.parse(part, read);
  return all.join("");
}

const hooksOf = async (): Promise<Hooks> =>
  (await guard.setup({ words: ["blue tulip"], action: "stop", mask: "" }, {} as never)) as Hooks;

describe.each(ROADS.filter(([from]) => !isImage(from)))("from %s into %s", (from, into) => {
  it.each(Object.keys(SPEECHES))("%s: no stopped content is sent", async (how) => {
    await using up = await startUpstream({
      "POST /*": (asked) => inAny(SPEECHES[how]!, asked) ?? jsonResponse({}, 400),
    });
    await using at = await startTestServices({
      frontend: CLIENTS[from]!.protocol,
      providers: {
        p: { endpoints: [{ protocol: TARGETS[into]!, base: `${up.url}/v1`, auth: "none" }] },
      },
      hooks: [await hooksOf()],
      // Google's clients put it in the path.
      read: (x, body) => ({
        model: body["model"] as string,
        stream: from === "gemini" ? x.headers["x-streamed"] === "true" : body["stream"] === true,
      }),
    });
    for (const stream of [false, true]) {
      const got = await at.ask(
        { model: "p/m", ...CLIENTS[from]!.least, ...(from !== "gemini" && { stream }) },
        { headers: { "x-streamed": String(stream) } },
      );
      const body = await got.text().catch(() => "cut: stopped at a word that is not allowed");
      expect(up.requests.length).toBeGreaterThan(0);
      expect(words(body)).not.toMatch(/tulip|STRANGER/);
      expect(body).toContain("stopped at a word that is not allowed");
      const lane = (at.journal as readonly any[]).find((row) => row.do === "reserve").clientRequest
        .mode;
      expect(lane).toBe(from === into ? "passthrough" : "translated");
    }
  });
});
