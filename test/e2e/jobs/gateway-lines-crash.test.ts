// Batches whose lines the gateway sends itself, and whose gateway is killed: the next one continues. No
// line is sent twice, and a line whose result is unknown is reported as lost.
import OpenAI, { toFile } from "openai";
import { mkdtemp, rm } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { expect, it } from "vitest";
import { say, startUpstream } from "tollgate/testing";
import { startDaemon, type Daemon } from "../../kit/process/daemon.ts";
import { KEY, ONE_KEY } from "../../kit/one-key.ts";
import { until } from "../../kit/wait.ts";

const LINES = 30;
const CONCURRENT = 3;
const KILLS = 2;
/** A gateway continues when the lease of the one before has ended, after a minute. */
const WAIT_MS = 600_000;
const ENDED = ["completed", "failed", "expired", "cancelled"];

interface Row {
  readonly attempt: string;
  readonly kind: string;
  readonly state: string;
  readonly outcome: string;
  readonly costNano: string;
  readonly usage: { readonly input?: number };
}

it("a batch goes on after its gateway was killed, twice", { timeout: 1_800_000 }, async () => {
  const dir = await mkdtemp(join(tmpdir(), "tollgate-lines-crash-"));
  const sent: string[] = [];
  let isHeld = false;
  const held: (() => void)[] = [];
  await using up = await startUpstream({
    "POST /v1/chat/completions": async (request) => {
      const { messages } = request.json() as { messages: { content: string }[] };
      sent.push(messages[0]!.content);
      if (isHeld) await new Promise<void>((resolve) => held.push(resolve));
      return say("done").toResponse(request);
    },
  });
  const start = (): Promise<Daemon> =>
    startDaemon({
      dir,
      yaml: `${ONE_KEY}
frontends: [chat-completions, { use: jobs, with: { run_lines: { per_minute: 60000, concurrent: ${CONCURRENT} } } }]
providers:
  plain:
    use: openai-compatible
    with: { base_url: "${up.url}/v1", api_key: k }
    models: { small: { price: { input: 2, output: 8 } } }
`,
    });
  const clientOf = (gateway: Daemon) =>
    new OpenAI({ apiKey: KEY, baseURL: `${gateway.url}/v1`, maxRetries: 0 });
  try {
    let gateway = await start();
    const lines = Array.from({ length: LINES }, (_, n) =>
      JSON.stringify({
        custom_id: `id-${n}`,
        method: "POST",
        url: "/v1/chat/completions",
        body: { model: "plain/small", messages: [{ role: "user", content: `line ${n}` }] },
      }),
    );
    const file = await clientOf(gateway).files.create({
      file: await toFile(Buffer.from(lines.join("\n")), "in.jsonl"),
      purpose: "batch",
    });
    isHeld = true;
    const { id } = await clientOf(gateway).batches.create({
      input_file_id: file.id,
      endpoint: "/v1/chat/completions",
      completion_window: "24h",
    });
    for (let kills = 1; kills <= KILLS; kills++) {
      const before = sent.length;
      await until(
        () => sent.length === before + CONCURRENT,
        () => "lines",
        WAIT_MS,
      );
      await gateway.stop("SIGKILL");
      for (const release of held.splice(0)) release();
      gateway = await start();
    }
    isHeld = false;
    for (const release of held.splice(0)) release();
    await using last = gateway;
    const client = clientOf(last);
    let batch = await client.batches.retrieve(id);
    await until(
      async () => {
        for (const release of held.splice(0)) release();
        batch = await client.batches.retrieve(id);
        return ENDED.includes(batch.status);
      },
      () => "the end of the batch",
      WAIT_MS,
    );
    expect(batch.status).toBe("completed");
    expect(new Set(sent).size, "no line was sent twice").toBe(sent.length);
    const { completed, failed } = batch.request_counts!;
    expect(completed! + failed!).toBe(LINES);
    expect(failed).toBe(KILLS * CONCURRENT);
    const errors = await (await client.files.content(batch.error_file_id!)).text();
    for (const line of errors.trimEnd().split("\n"))
      expect(JSON.parse(line)).toMatchObject({ error: { code: "batch_lost" } });
    const { items } = (await last.ask("ledger.entries", { limit: 1_000 })) as unknown as {
      readonly items: readonly Row[];
    };
    const settled = items.filter(({ attempt, kind }) => kind === "settle" && attempt.includes("."));
    expect(settled).toHaveLength(LINES);
    const outcomes = settled.map(({ outcome }) => outcome);
    expect(outcomes.filter((one) => one === "recovered")).toHaveLength(KILLS * CONCURRENT);
    const input = settled
      .filter(({ outcome }) => outcome === "ok")
      .reduce((sum, { usage }) => sum + usage.input!, 0);
    expect(batch.usage!.input_tokens).toBe(input);
    expect(await last.ask("ledger.verify")).toMatchObject({ problems: [] });
  } finally {
    await rm(dir, { recursive: true, force: true });
  }
});
