import { expect, it } from "vitest";
import type { Price } from "tollgate/plugin";
import { chats, LEAST } from "../../protocols/generators/codecs.ts";
import { installTestClock } from "../../kit/clock.ts";
import { startBackend, startTestServices } from "../../kit/test-services.ts";
import { until } from "../../kit/wait.ts";

const price: Price = {
  lines: [
    { unit: "input", usd: "1", per: 1_000_000 },
    { unit: "output", usd: "10", per: 1_000_000 },
  ],
};
const facts = { price, limits: { context: 1_000_000, output: 100_000 } };
const event = (content: string) =>
  `data: ${JSON.stringify({ id: "c", object: "chat.completion.chunk", created: 1, model: "m", choices: [{ index: 0, delta: { content } }] })}\n\n`;

// After a crash, a call is billed by its last progress row.
it("the progress of a fast model includes its output of 2.5 s", async () => {
  const clock = installTestClock();
  clock.stop();
  await using up = await startBackend((_req, res) => {
    res.writeHead(200, { "content-type": "text/event-stream" });
    res.write(event("word ".repeat(20_000)));
  });
  await using s = await startTestServices({
    frontend: chats["chat-completions"]!,
    providers: {
      p: {
        endpoints: [{ protocol: chats["chat-completions"]!, base: up.base, auth: "none" }],
        facts: new Map([["m", facts]]) as never,
      },
    },
  });
  const answer = await s.ask({ model: "p/m", stream: true, ...LEAST["chat-completions"] });
  const reader = answer.body!.getReader();
  await reader.read();
  const from = clock.now();
  const row = () => s.journal.find((one: any) => one.do === "progress") as any;
  await until(() => {
    if (row() === undefined) clock.skip(250);
    return row() !== undefined;
  });
  const { usage, costNano } = row();
  const elapsed = (clock.now() - from) / 1_000;
  const unreported = Math.ceil((usage.output / elapsed) * 2.5);
  expect(costNano).toBe(BigInt(usage.input * 1_000 + (usage.output + unreported) * 10_000));
  await reader.cancel();
});
