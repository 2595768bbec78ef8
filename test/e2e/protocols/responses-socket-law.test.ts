// Laws of the Responses socket: its events are those of a stream for the same request, and each
// completed response that a client saw has exactly one row with the same counts.
import { afterAll, beforeAll, describe, expect, it } from "vitest";
import fc from "fast-check";
import { say, scriptedModel, startUpstream, think, type TestUpstream } from "tollgate/testing";
import { digestKey } from "../../../src/lib/api-key.ts";
import { startInProcess } from "../../kit/in-process.ts";
import { trialCount } from "../../kit/law-effort.ts";
import { dial, isTerminal, type SocketClient } from "../../kit/socket-client.ts";
import { until } from "../../kit/wait.ts";

const KEY = "alice-key";
const yaml = (up: string) => `
frontends: [responses]
middleware:
  - { use: auth, with: { keys: [{ id: alice, digest: "${digestKey(KEY)}" }] } }
  - limits
providers:
  openai: { use: openai, with: { api_key: k, base_url: "${up}/v1" } }
  claude: { use: anthropic, with: { api_key: k, base_url: "${up}" } }
  plain: { use: openai-compatible, with: { api_key: k, base_url: "${up}/v1" } }
`;
const MODELS = ["openai/gpt-6", "claude/claude-sonnet-5", "plain/m"];

let up: TestUpstream;
let gateway: Awaited<ReturnType<typeof startInProcess>>;
let client: SocketClient;
beforeAll(async () => {
  up = await startUpstream();
  gateway = await startInProcess({ yaml: yaml(up.url) });
  client = await dial(gateway.url, { key: KEY });
});
afterAll(async () => {
  await client[Symbol.asyncDispose]();
  await gateway[Symbol.asyncDispose]();
  await up.close();
});

interface Row {
  readonly kind: string;
  readonly state: string;
  readonly usage: { readonly input?: number; readonly output?: number };
}
const settled = async (): Promise<Row[]> =>
  ((await gateway.ask("ledger.entries", { limit: 500 } as never)) as any).items.filter(
    ({ kind }: Row) => kind === "settle",
  );

async function overHttp(body: object): Promise<any[]> {
  const response = await fetch(`${gateway.url}/v1/responses`, {
    method: "POST",
    headers: { authorization: `Bearer ${KEY}`, "content-type": "application/json" },
    body: JSON.stringify({ ...body, stream: true }),
  });
  const text = await response.text();
  return text
    .split("\n")
    .filter((line) => line.startsWith("data: {"))
    .map((line) => JSON.parse(line.slice(6)));
}
async function overSocket(body: object, lane: string | undefined): Promise<any[]> {
  client.send({ type: "response.create", ...(lane !== undefined && { stream_id: lane }), ...body });
  const events = await client.until(isTerminal);
  for (const event of events) {
    expect(event.stream_id).toBe(lane);
    delete event.stream_id;
  }
  return events;
}

/** The events without what differs from one request to the next: IDs and times. */
function comparable(events: readonly object[]): unknown {
  const ids = new Map<string, string>();
  return JSON.parse(JSON.stringify(events), (name, value) => {
    if (name.endsWith("_at")) return 0;
    if (typeof value !== "string" || !/(^|_)id$/.test(name)) return value;
    if (!ids.has(value)) ids.set(value, `id ${ids.size}`);
    return ids.get(value);
  });
}

const speech = fc.record({
  thought: fc.option(fc.string({ minLength: 1, maxLength: 20 }), { nil: undefined }),
  text: fc.string({ minLength: 1, maxLength: 60, unit: "grapheme" }),
  tool: fc.option(fc.constantFrom("look", "search"), { nil: undefined }),
  input: fc.nat(5_000),
  output: fc.integer({ min: 1, max: 900 }),
  lane: fc.option(fc.constantFrom("a", "b-2", "c.d_e"), { nil: undefined }),
});

describe.each(MODELS)("%s", (model) => {
  it("has the events of a stream, and one row with the counts that the client saw", () =>
    fc.assert(
      fc.asyncProperty(speech, async ({ thought, text, tool, input, output, lane }) => {
        up.reset();
        up.setRoutes(
          scriptedModel(() => {
            const begun = thought === undefined ? undefined : think(thought, "c2ln");
            const said = begun ? begun.say(text) : say(text);
            const whole = tool === undefined ? said : said.call(tool, { q: text });
            return whole.usage({ input, output });
          }),
        );
        const body = {
          model,
          input: [{ role: "user", content: "Hi" }],
          tools: ["look", "search"].map((name) => ({
            type: "function",
            name,
            parameters: { type: "object" },
            strict: false,
          })),
        };
        const http = await overHttp(body);
        const rowsBefore = await settled();
        const socket = await overSocket(body, lane);
        expect(comparable(socket)).toEqual(comparable(http));
        await until(async () => (await settled()).length > rowsBefore.length);
        const rows = await settled();
        expect(rows.length).toBe(rowsBefore.length + 1);
        const { usage } = socket.at(-1).response;
        expect([usage.input_tokens, usage.output_tokens]).toEqual([input, output]);
        expect(rows.some((row) => row.usage.input === input && row.usage.output === output)).toBe(
          true,
        );
      }),
      { numRuns: trialCount(40), seed: 7 },
    ));
});
