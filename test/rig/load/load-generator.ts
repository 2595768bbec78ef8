// Clients that send requests at their own rate, however late the responses are: an open loop, like
// real traffic.
import { Agent, request } from "node:http";
import { setTimeout as sleep } from "node:timers/promises";

export interface TimedResponse {
  readonly status: number;
  /** From its due time, so that a late send counts. */
  readonly ms: number;
  /** Milliseconds of the monotonic clock. */
  readonly at: number;
  readonly retryAfter: string | undefined;
}

const agent = new Agent({ keepAlive: true });

export function askOnce(
  url: string,
  key: string,
  body: string,
  due = performance.now(),
): Promise<TimedResponse> {
  return new Promise((resolve) => {
    const over = (status: number, retryAfter?: string) => {
      const at = performance.now();
      resolve({ status, ms: at - due, at, retryAfter });
    };
    const req = request(
      `${url}/v1/chat/completions`,
      {
        agent,
        method: "POST",
        headers: {
          "content-type": "application/json",
          "content-length": Buffer.byteLength(body),
          authorization: `Bearer ${key}`,
        },
      },
      (res) => {
        res.resume();
        res.on("end", () => over(res.statusCode!, res.headers["retry-after"]));
        res.on("error", () => over(0));
      },
    );
    req.on("error", () => over(0));
    req.end(body);
  });
}

/** A response that needs no work of the gateway: the cost of machine and connection only. */
export function askHealth(url: string): Promise<number> {
  const began = performance.now();
  return new Promise((resolve) => {
    const over = () => resolve(performance.now() - began);
    request(`${url}/healthz`, { agent }, (res) => {
      res.resume();
      res.on("close", over);
    })
      .on("error", over)
      .end();
  });
}

/** A rate per second, and a duration. */
export async function runOpenLoop(of: {
  perSecond: number;
  ms: number;
  ask: () => Promise<TimedResponse>;
}): Promise<TimedResponse[]> {
  const asked: Promise<TimedResponse>[] = [];
  const began = performance.now();
  for (let now = began; now - began < of.ms; now = performance.now()) {
    const due = Math.floor(((now - began) / 1_000) * of.perSecond);
    while (asked.length < due) asked.push(of.ask());
    await sleep(2);
  }
  return Promise.all(asked);
}

/** A number of concurrent requests, each sent after a response. */
export async function runClosedLoop(of: {
  clients: number;
  ms: number;
  ask: () => Promise<TimedResponse>;
}): Promise<TimedResponse[]> {
  const answered: TimedResponse[] = [];
  const end = performance.now() + of.ms;
  const client = async () => {
    while (performance.now() < end) answered.push(await of.ask());
  };
  await Promise.all(Array.from({ length: of.clients }, client));
  return answered;
}

export const isGood = ({ status }: TimedResponse): boolean => status === 200;

export function percentile(values: readonly number[], share: number): number {
  const sorted = values.toSorted((a, b) => a - b);
  return sorted[Math.min(sorted.length - 1, Math.floor(sorted.length * share))] ?? 0;
}
