// Connects plugins to the public port of the same gateway, without leaving the machine. The
// certificate is accepted only if it is the listener's own. Its issuer and name are not checked,
// because a local client cannot verify either.
import { readFile } from "node:fs";
import { Agent, buildConnector } from "undici";
import type { LocalEndpoint } from "../http/local-endpoint.ts";

const CONNECT_TIMEOUT_MS = 5_000;
const MAX_AGENTS = 16;
const agentsByOrigin = new Map<string, Agent>();

/**
 * Returns the agent of an endpoint. The agent is kept between calls. The certificate is read again
 * for each connection, because it may have been renewed.
 */
export function localAgentFor({ origin, socket, certificateFile }: LocalEndpoint): Agent {
  const key = JSON.stringify([origin, socket, certificateFile]);
  const known = agentsByOrigin.get(key);
  if (known) return known;
  const agent = new Agent({
    keepAliveTimeout: 1_000,
    connect: (options, callback) => {
      const dial = (ca: Buffer | undefined) =>
        buildConnector({
          timeout: CONNECT_TIMEOUT_MS,
          socketPath: socket ?? null,
          ...(ca && { ca, allowPartialTrustChain: true, checkServerIdentity: () => undefined }),
        })(options, callback);
      if (certificateFile === undefined) dial(undefined);
      else readFile(certificateFile, (error, ca) => (error ? callback(error, null) : dial(ca)));
    },
  });
  if (agentsByOrigin.size >= MAX_AGENTS) agentsByOrigin.delete(agentsByOrigin.keys().next().value!);
  agentsByOrigin.set(key, agent);
  return agent;
}
