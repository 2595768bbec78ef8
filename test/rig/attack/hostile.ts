// Upstreams that never end, or that send too much. Each ends at its limit with the error of the
// client's protocol.
import type { Attack } from "./target.ts";
import { HOSTILE } from "./upstream.ts";

const CLIENTS = {
  "chat-completions": ["/v1/chat/completions", { messages: [{ role: "user", content: "a" }] }],
  messages: ["/v1/messages", { max_tokens: 9, messages: [{ role: "user", content: "a" }] }],
  responses: ["/v1/responses", { input: "a", store: false }],
} as const;

/** An upstream that only ends at a timeout belongs to a provider with a short one. */
const PROVIDER: Readonly<Record<string, string>> = { "endless-comments": "hasty" };

/** Fields from which SDKs read an error, non-streaming or streaming. */
const isError = (body: string) =>
  /"error"|"type":"response\.failed"/.test(body.slice(0, 2_000) + body.slice(-20_000));
/** The end of a response, not of an attack: excess content was dropped. */
const HARMLESS = new Set(["large-id"]);
const PASSING = new Set(["endless-words", "endless-letters"]);
const SOON_MS = 60_000;

export const attacks: readonly Attack[] = Object.keys(HOSTILE).map((model) => ({
  name: `an upstream of ${model.replaceAll("-", " ")}`,
  async run(site) {
    const wrong: string[] = [];
    for (const [client, [path, ask]] of Object.entries(CLIENTS))
      for (const stream of [true, false]) {
        // In passthrough mode, text is forwarded immediately and not kept: the client disconnects
        // when it has enough.
        if (stream && client === "chat-completions" && PASSING.has(model)) continue;
        const what = `${model} to ${client}${stream ? ", streamed" : ""}`;
        const since = performance.now();
        const body = JSON.stringify({
          model: `${PROVIDER[model] ?? "chat"}/${model}`,
          stream,
          ...ask,
        });
        const told = await Promise.race([
          site.post(path, body),
          new Promise<undefined>((resolve) => setTimeout(resolve, SOON_MS, undefined).unref()),
        ]);
        if (!told) wrong.push(`${what}: no end after ${SOON_MS / 1000} s`);
        else if (told.status === 0) wrong.push(`${what}: it was cut off`);
        else if (told.status >= 500 && ![502, 504].includes(told.status))
          wrong.push(`${what}: ${told.status}`);
        else if (!HARMLESS.has(model) && model !== "many-calls" && !isError(told.body))
          wrong.push(`${what}: ${told.status} and no error: ${told.body.slice(-200)}`);
        if (performance.now() - since > SOON_MS) wrong.push(`${what}: took too long`);
      }
    const usage = (await site.daemon.ask("usage", {}).catch(() => "")) as unknown;
    if (JSON.stringify(usage ?? "").length > 1e6) wrong.push(`${model}: the ledger has it all`);
    return wrong;
  },
}));
