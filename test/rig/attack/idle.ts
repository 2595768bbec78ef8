// Sockets that sent a large body, received a response, and stay open. Memory of a request is
// released with its response, not with its socket.
import { Agent, request } from "node:http";
import { setTimeout as sleep } from "node:timers/promises";
import type { Attack, Site } from "./target.ts";

const LARGE = 30 * 1024 * 1024;
const chat = (model: string, more = "") =>
  `{"model":"${model}",${more}"messages":[{"role":"user","content":"${"word ".repeat(LARGE / 5)}"}]}`;

/** Paths to a response. */
const WAYS: Readonly<Record<string, string>> = {
  verbatim: chat("chat/m"),
  streamed: chat("chat/m", '"stream":true,'),
  translated: chat("messages/m"),
  "translated stream": chat("messages/m", '"stream":true,'),
  "to gemini": chat("gemini/m"),
  "no such model": chat("none/m"),
  "a field of a wrong type": chat("messages/m", '"tools":7,'),
  "no JSON": `[${" ".repeat(LARGE)}`,
};

function ask(site: Site, agent: Agent, body: Buffer): Promise<number> {
  return new Promise((resolve) => {
    const asked = request(
      `${site.daemon.url}/v1/chat/completions`,
      {
        method: "POST",
        agent,
        headers: {
          authorization: `Bearer ${site.daemon.key}`,
          "content-type": "application/json",
          "content-length": body.length,
        },
      },
      (answer) => answer.resume().on("end", () => resolve(answer.statusCode ?? 0)),
    );
    asked.on("error", () => resolve(0));
    asked.end(body);
  });
}

export const idleAttack: Attack = {
  name: "idle sockets that have sent 30 MB each",
  async run(site) {
    const wrong: string[] = [];
    const agents: Agent[] = [];
    for (const [way, body] of Object.entries(WAYS)) {
      const before = await site.settled();
      const agent = new Agent({ keepAlive: true, maxSockets: 1 });
      agents.push(agent);
      const status = await ask(site, agent, Buffer.from(body));
      // Memory that is about to be released does not count.
      let more = Infinity;
      for (let look = 0; look < 3 && more > LARGE / 2; look++) {
        if (look > 0) await sleep(2_000);
        more = (await site.settled()).live - before.live;
      }
      if (status === 0) wrong.push(`idle sockets, ${way}: no answer`);
      if (more > LARGE / 2) wrong.push(`idle sockets, ${way}: ${(more / 1e6).toFixed(0)} MB stay`);
    }
    for (const agent of agents) agent.destroy();
    return wrong;
  },
};
