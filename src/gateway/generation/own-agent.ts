// Connections of plugins to the gateway that they run in, at the port of clients. They stay on this machine. A certificate is accepted
// only if it is the listener's own, for any issuer and any name: a client on this machine cannot check either.
import { readFile } from "node:fs";
import { Agent, buildConnector } from "undici";
import type { OwnPort } from "../http/own-port.ts";

const CONNECT_MS = 5_000;
const MOST_AGENTS = 16;
const agents = new Map<string, Agent>();

/** Kept between calls; a certificate is read again for each connection, since it may have been renewed. */
export function agentTo({ origin, socket, cert }: OwnPort): Agent {
  const key = JSON.stringify([origin, socket, cert]);
  const known = agents.get(key);
  if (known) return known;
  const made = new Agent({
    keepAliveTimeout: 1_000,
    connect: (options, callback) => {
      const dial = (ca: Buffer | undefined) =>
        buildConnector({
          timeout: CONNECT_MS,
          socketPath: socket ?? null,
          ...(ca && { ca, allowPartialTrustChain: true, checkServerIdentity: () => undefined }),
        })(options, callback);
      if (cert === undefined) dial(undefined);
      else readFile(cert, (error, ca) => (error ? callback(error, null) : dial(ca)));
    },
  });
  if (agents.size >= MOST_AGENTS) agents.delete(agents.keys().next().value!);
  agents.set(key, made);
  return made;
}
