// Background responses whose gateway stops: each ends with the reason, or continues at its provider,
// and its call is settled once.
import OpenAI from "openai";
import { mkdtemp, rm } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { afterAll, beforeAll, expect, it } from "vitest";
import { createBackgroundApi, say, startUpstream, type TestUpstream } from "tollgate/testing";
import { startDaemon, type Daemon } from "../../kit/process/daemon.ts";
import { KEY, ONE_KEY } from "../../kit/one-key.ts";
import { until } from "../../kit/wait.ts";

let up: TestUpstream;
beforeAll(async () => {
  // The provider begins each response and never ends it.
  up = await startUpstream({
    "POST /v1/responses": (request) => ({
      ...say("one two three four").toResponse(request),
      truncation: { after: { pieces: 5 }, how: "stall" },
    }),
  });
});
afterAll(() => up?.close());

const start = (dir: string): Promise<Daemon> =>
  startDaemon({
    dir,
    yaml: `${ONE_KEY}
frontends: [{ use: responses, with: { background: {} } }]
shutdown: { timeout: 1s, announce: 0s }
providers: { openai: { use: openai, with: { base_url: "${up.url}/v1", api_key: k } } }
`,
  });

const clientOf = (gateway: Daemon) =>
  new OpenAI({ apiKey: KEY, baseURL: `${gateway.url}/v1`, maxRetries: 0 });

interface Row {
  readonly kind: string;
  readonly request: string;
  readonly outcome: string;
}

it.each([
  ["SIGKILL", "The gateway that ran this response stopped before it was complete.", "recovered"],
  ["SIGTERM", "The gateway stopped before the response was complete.", "canceled"],
] as const)(
  "a response of a gateway that got %s fails, and is billed once",
  async (signal, message, outcome) => {
    const dir = await mkdtemp(join(tmpdir(), "tollgate-crash-"));
    try {
      const first = await start(dir);
      const { data, response } = await clientOf(first)
        .responses.create({ model: "openai/gpt-4.1", input: "Hi", background: true })
        .withResponse();
      const { id } = data;
      await until(
        async () => (await clientOf(first).responses.retrieve(id)).status === "in_progress",
      );
      await first.stop(signal);
      await using second = await start(dir);
      const client = clientOf(second);
      const events: OpenAI.Responses.ResponseStreamEvent[] = [];
      for await (const event of await client.responses.retrieve(id, { stream: true }))
        events.push(event);
      expect(events.map((event) => event.sequence_number)).toEqual(events.map((_, n) => n));
      expect(events.at(-1)).toMatchObject({ type: "response.failed" });
      const failed = await client.responses.retrieve(id);
      expect(failed).toMatchObject({ id, status: "failed", error: { message } });
      const { items } = (await second.ask("ledger.entries", {})) as unknown as {
        readonly items: readonly Row[];
      };
      const request = response.headers.get("x-request-id");
      const settled = items.filter((row) => row.request === request && row.kind === "settle");
      expect(settled.map((row) => row.outcome)).toEqual([outcome]);
      expect(await second.ask("ledger.verify")).toMatchObject({ problems: [] });
      await client.responses.delete(id);
      await expect(client.responses.retrieve(id)).rejects.toMatchObject({ status: 404 });
    } finally {
      await rm(dir, { recursive: true, force: true });
    }
  },
  300_000,
);

/** The killed gateway may have a lease of 60 s. */
const TAKEOVER = [() => "a gateway continues", 600_000] as const;

it("a response that its provider runs continues after SIGKILL, and is billed once", async () => {
  const api = createBackgroundApi({ polls: Infinity, text: "still here" });
  await using provider = await startUpstream(api.routes("/responses"));
  const dir = await mkdtemp(join(tmpdir(), "tollgate-crash-"));
  const startNative = () =>
    startDaemon({
      dir,
      yaml: `${ONE_KEY}
frontends: [{ use: responses, with: { background: { native: true } } }]
providers: { openai: { use: openai, with: { base_url: "${provider.url}/v1", api_key: k } } }
`,
    });
  try {
    const first = await startNative();
    const { id } = await clientOf(first).responses.create({
      model: "openai/gpt-4.1",
      input: "Hi",
      background: true,
    });
    const [running] = api.responses.values();
    await until(() => running!.state === "running");
    await first.stop("SIGKILL");
    running!.state = "completed";
    await using second = await startNative();
    const client = clientOf(second);
    let done: OpenAI.Responses.Response | undefined;
    await until(
      async () => {
        done = await client.responses.retrieve(id);
        return done.status === "completed";
      },
      ...TAKEOVER,
    );
    expect(done).toMatchObject({ id, output_text: "still here", usage: { output_tokens: 7 } });
    expect(api.responses.size).toBe(1);
    const { items } = (await second.ask("ledger.entries", {})) as unknown as {
      readonly items: readonly (Row & { readonly state: string })[];
    };
    const settled = items.filter(({ kind }) => kind === "settle");
    expect(settled.map(({ state }) => state).toSorted()).toEqual(["exact", "void"]);
    expect(await second.ask("ledger.verify")).toMatchObject({ problems: [] });
  } finally {
    await rm(dir, { recursive: true, force: true });
  }
}, 900_000);
