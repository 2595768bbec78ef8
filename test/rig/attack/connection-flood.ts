// One key with a concurrency of one, and many sockets: dozens of bodies, almost complete bodies,
// and silent sockets.
import { setTimeout as sleep } from "node:timers/promises";
import { BOUNDS } from "../../../src/lib/bounds.ts";
import type { Attack, Site } from "./target.ts";

const LARGE = 31 * 1024 * 1024;
const head = (key: string, length: number, path = "/v1/chat/completions") =>
  `POST ${path} HTTP/1.1\r\nhost: localhost\r\nauthorization: Bearer ${key}\r\ncontent-type: application/json\r\ncontent-length: ${length}\r\n\r\n`;

/** A longer time is a hang, because some machines need seconds for everything sent in parallel. */
const SOON_MS = 20_000;

/** It responds to others quickly in the meantime. */
async function served(site: Site, what: string): Promise<string[]> {
  const since = performance.now();
  const { status } = await site.post(
    "/v1/chat/completions",
    '{"model":"chat/m","messages":[{"role":"user","content":"a"}]}',
  );
  const ms = performance.now() - since;
  return status === 200 && ms < SOON_MS
    ? []
    : [`${what}: another key got ${status} after ${ms.toFixed(0)} ms`];
}

const onePlace = (site: Site) => site.key(`one ${Math.random()}`, { limits: ["concurrent=1"] });

const bodies: Attack = {
  name: "14 bodies of 31 MB from a key with one place",
  async run(site) {
    const key = await onePlace(site);
    const content = `[${"{},".repeat(Math.floor(LARGE / 3) - 100)}{}]`;
    const body = Buffer.from(
      `{"model":"chat/m","messages":[{"role":"user","content":${content}}]}`,
    );
    const { rss } = await site.settled();
    const all = Array.from({ length: 14 }, () => site.post("/v1/chat/completions", body, { key }));
    const wrong = await served(site, "many bodies");
    const told = await Promise.all(all);
    const bad = told.filter(({ status }) => ![0, 413, 429, 503].includes(status));
    if (bad.length > 0) wrong.push(`many bodies: ${bad.map(({ status }) => status).join(" ")}`);
    const after = await site.settled();
    if (after.rss - rss > 300e6)
      wrong.push(`many bodies: ${((after.rss - rss) / 1e6).toFixed(0)} MB more than before`);
    return wrong;
  },
};

const nearly: Attack = {
  name: "60 sockets that hold 30 of 31 MB",
  async run(site) {
    const key = await site.key(`nearly ${Math.random()}`);
    const before = await site.settled();
    const part = "x".repeat(1024 * 1024);
    const sockets = await Promise.all(
      Array.from({ length: 60 }, async () => {
        const socket = await site.dial(head(key, LARGE));
        for (let i = 0; i < 30; i++) if (!socket.destroyed) socket.write(part);
        return socket;
      }),
    );
    // A client that keeps writing without reading may lose the response when its connection ends.
    const refusals = () => sockets.filter((s) => s.said().includes(" 503 ") || s.closed).length;
    await sleep(3_000);
    for (let i = 0; i < 40 && refusals() < 40; i++) await sleep(1_000);
    const wrong = await served(site, "sockets with bodies");
    const during = await site.settled();
    if (during.live - before.live > 300e6)
      wrong.push(`sockets with bodies: hold ${((during.live - before.live) / 1e6).toFixed(0)} MB`);
    const refused = refusals();
    if (refused < 40) wrong.push(`sockets with bodies: only ${refused} of 60 were refused`);
    for (let i = 0; i < 40 && sockets.some((socket) => !socket.closed); i++) await sleep(1_000);
    const open = sockets.filter((socket) => !socket.closed).length;
    if (open > 0) wrong.push(`sockets with bodies: ${open} are still there`);
    for (const socket of sockets) socket.destroy();
    return wrong;
  },
};

const PER_ADDRESS = BOUNDS.connectionsPerAddress.max;

const silent: Attack = {
  name: "2,500 sockets of one address",
  long: true,
  async run(site) {
    const sockets = await Promise.all(Array.from({ length: 2_500 }, () => site.dial("")));
    // On a busy machine, some of the first connections have timed out before the last one connects.
    const count = () => sockets.filter((s) => s.said().includes("too_many_connections")).length;
    const opened = () => sockets.filter((s) => !s.closed).length;
    for (let i = 0; i < 40 && (count() === 0 || opened() > PER_ADDRESS); i++) await sleep(500);
    const [refused, open] = [count(), opened()];
    for (const socket of sockets) socket.destroy();
    await sleep(500);
    const wrong = await served(site, "many sockets");
    if (refused === 0) wrong.push("many sockets: none was refused");
    if (open > PER_ADDRESS) wrong.push(`many sockets: ${open} are open at once`);
    return wrong;
  },
};

export const attacks: readonly Attack[] = [bodies, nearly, silent];
