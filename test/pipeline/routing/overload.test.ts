// An excess request: rejected by its headers, in its protocol's format, without a row.
import { once } from "node:events";
import { connect } from "node:net";
import { expect, it } from "vitest";
import { startBackend, startTestServices } from "../../kit/test-services.ts";
import { until } from "../../kit/wait.ts";
import { createToyProtocol } from "../toy-protocol.ts";

const line = (o: object) => `${JSON.stringify(o)}\n`;
const WHOLE = line({ id: "u", say: "Hello", usage: { input: 1, output: 1 }, end: "stop" });

it("a request is rejected before its body is read, and the others continue", async () => {
  let free = () => {};
  const gone = new Promise<void>((resolve) => (free = resolve));
  await using up = await startBackend((_req, res) => {
    void gone.then(() => res.writeHead(200, { "content-type": "application/json" }).end(WHOLE));
  });
  await using s = await startTestServices({
    frontend: createToyProtocol(),
    providers: {
      p: { endpoints: [{ protocol: createToyProtocol(), base: up.base, auth: "none" }] },
    },
    overload: { maxConcurrent: 1, maxQueueWaitMs: 5 },
  });
  const first = s.ask({ model: "p/m", text: "Hi" });
  await until(() => up.asked.length === 1);
  const socket = connect(Number(new URL(s.url).port), "127.0.0.1").on("error", () => {});
  await once(socket, "connect");
  let said = "";
  socket.on("data", (chunk) => (said += chunk));
  // Headers only: they announce a body that never arrives.
  socket.write(
    "POST /toy HTTP/1.1\r\nhost: x\r\ncontent-type: application/json\r\ncontent-length: 2000\r\n\r\n",
  );
  await until(() => said.includes("gateway_overloaded"));
  expect(said).toMatch(/^HTTP\/1\.1 503 /);
  expect(said).toMatch(/\r\nretry-after: [1-3]\r\n/i);
  expect(said).not.toMatch(/x-should-retry: false/i);
  free();
  expect((await first).status).toBe(200);
  // A later request is admitted again, and the rejected one has no row.
  expect((await s.ask({ model: "p/m", text: "Hi" })).status).toBe(200);
  expect(s.journal.filter((row) => row.do === "reserve")).toHaveLength(2);
  await until(() => s.house.admissionQueue.running === 0);
});

it("a waiting request is admitted in its turn", async () => {
  await using up = await startBackend((_req, res) => {
    setTimeout(() => res.writeHead(200, { "content-type": "application/json" }).end(WHOLE), 5);
  });
  await using s = await startTestServices({
    frontend: createToyProtocol(),
    providers: {
      p: { endpoints: [{ protocol: createToyProtocol(), base: up.base, auth: "none" }] },
    },
    overload: { maxConcurrent: 1, maxQueueWaitMs: 20_000 },
  });
  const all = Array.from({ length: 20 }, () => s.ask({ model: "p/m", text: "Hi" }));
  expect((await Promise.all(all)).map(({ status }) => status)).toEqual(Array(20).fill(200));
  await until(() => s.house.admissionQueue.running === 0);
});
