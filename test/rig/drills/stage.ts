// Shared parts of the drills: a gateway of two processes with metrics, alerts, and an admin
// listener, a receiver of its alerts, and common checks.
import { createServer, type IncomingMessage } from "node:http";
import type { AddressInfo } from "node:net";
import type { JsonObject } from "tollgate/plugin";
import type { GatewayStatus } from "../../../src/runtime/gateway-api.ts";
import { startDaemon, type Daemon, type DaemonOptions } from "../../kit/process/daemon.ts";
import { sumSamples } from "../../kit/exposition.ts";
import { until } from "../../kit/wait.ts";

export const TOKEN = "0123456789abcdef01234567";
const SECRET = `whsec_${Buffer.alloc(32, 7).toString("base64")}`;

export interface Heard {
  readonly type: string;
  readonly runbook?: string;
  readonly data: JsonObject;
}

export interface Stage extends AsyncDisposable {
  readonly gateway: Daemon;
  /** Alerts in the order of arrival. */
  readonly heard: readonly Heard[];
  status(): Promise<GatewayStatus>;
  /** Waits until it has this value. The text is generated at most once per second. */
  metric(name: string, value: number): Promise<void>;
  /** `/readyz` on many connections, each to any process: "200 ready". */
  readiness(): Promise<ReadonlySet<string>>;
  ask(model: string, key?: string): Promise<number>;
  /** Waits until an alert of this type has arrived. */
  alert(type: string): Promise<Heard>;
}

async function receiver(heard: Heard[]) {
  const server = createServer((req: IncomingMessage, res) => {
    const parts: Buffer[] = [];
    req.on("data", (part: Buffer) => parts.push(part));
    req.on("end", () => {
      heard.push(JSON.parse(Buffer.concat(parts).toString()) as Heard);
      res.end();
    });
  });
  await new Promise<void>((open) => server.listen(0, "127.0.0.1", open));
  const { port } = server.address() as AddressInfo;
  return { server, url: `http://127.0.0.1:${port}/` };
}

export async function stage(
  yaml: string,
  more: Omit<DaemonOptions, "yaml"> & { readonly workers?: number } = {},
): Promise<Stage> {
  const heard: Heard[] = [];
  const { server, url } = await receiver(heard);
  const around = aroundOf(url, more.workers ?? 2);
  const gateway = await startDaemon({ ...more, yaml: `${around}${yaml}` }).catch((error) => {
    server.close();
    throw error;
  });
  const admin = async (path: string) => {
    const { adminUrl: at } = (await gateway.ask("status")) as { adminUrl: string };
    const res = await fetch(`${at}${path}`, { headers: { authorization: `Bearer ${TOKEN}` } });
    return res.text();
  };
  const of: Stage = {
    gateway: {
      ...gateway,
      // The surrounding part is unchanged.
      write: (text) => gateway.write(`${around}${text}`),
    },
    heard,
    status: async () => (await gateway.ask("status")) as unknown as GatewayStatus,
    async metric(name, value) {
      let last = Number.NaN;
      await until(
        async () => (last = sumSamples(await admin("/metrics"), name)) === value,
        () => `${name} ${value}; it is ${last}`,
      );
    },
    async readiness() {
      const all = Array.from({ length: 16 }, async () => {
        const res = await fetch(`${gateway.url}/readyz`, { headers: { connection: "close" } });
        return `${res.status} ${((await res.json()) as { status: string }).status}`;
      });
      return new Set(await Promise.all(all));
    },
    async ask(model, key = gateway.key) {
      const res = await fetch(`${gateway.url}/v1/chat/completions`, {
        method: "POST",
        headers: {
          "content-type": "application/json",
          authorization: `Bearer ${key}`,
          connection: "close",
        },
        body: JSON.stringify({ model, messages: [{ role: "user", content: "Hello" }] }),
      });
      await res.arrayBuffer();
      return res.status;
    },
    async alert(type) {
      await until(
        () => heard.some((one) => one.type === type),
        () => `the alert ${type}; ${heard.map((one) => one.type).join(", ")}`,
      );
      return heard.find((one) => one.type === type)!;
    },
    async [Symbol.asyncDispose]() {
      await gateway[Symbol.asyncDispose]();
      server.closeAllConnections();
      server.close();
    },
  };
  return of;
}

const aroundOf = (url: string, workers: number): string => `
workers: ${workers}
admin: { port: 0, tokens: { ann: { role: owner, token: "${TOKEN}" } } }
shutdown: { announce: 0s, timeout: 5s }
frontends: [chat-completions]
observers:
  - metrics
  - { use: alerts, with: { receivers: { ops: { url: "${url}", secret: "${SECRET}" } } } }
`;

/** Violations in a drill: pairs of a requirement and whether it is met. */
export const wrong = (facts: Readonly<Record<string, unknown>>): readonly string[] =>
  Object.entries(facts).flatMap(([fact, holds]) => (holds === true ? [] : [`${fact}: ${holds}`]));

/** Whether this was reported exactly once. */
export const once = (heard: readonly Heard[], type: string): unknown => {
  const { length } = heard.filter((one) => one.type === type);
  return length === 1 || `${length} times`;
};

export const only = (set: ReadonlySet<string>, one: string): unknown =>
  (set.size === 1 && set.has(one)) || [...set].join(", ");
