// Connects through an HTTP proxy with a CONNECT tunnel. TLS is established with the provider inside
// the tunnel, so the proxy sees only the host of an https URL.
import { request as plain, type IncomingMessage } from "node:http";
import { request as secure } from "node:https";
import { isIP, type Socket } from "node:net";
import { buildConnector } from "undici";
import { isLoopback, isMetadataAddress } from "./egress-guard.ts";
import { matchesGlob } from "../glob.ts";

export interface ProxyConfig {
  readonly url: string;
  /** Patterns of hosts that are reached without the proxy. Each may contain one `*`. */
  readonly bypassHosts: readonly string[];
}

/** Creates a connector for undici. Hosts that bypass the proxy are connected with `straight`. */
export function createTunnelConnector(
  { url, bypassHosts }: ProxyConfig,
  straight: buildConnector.connector,
  timeoutMs: number,
  tls: buildConnector.BuildOptions = {},
): buildConnector.connector {
  const excepted = bypassHosts.map(hostMatcher);
  const within = buildConnector({ ...tls, timeout: timeoutMs, allowH2: false });
  return (options, done) => {
    const host = options.hostname.replace(/^\[|\]$/g, "");
    // Loopback addresses and the metadata service belong to this machine and are never reached
    // through a proxy.
    const here = isLoopback(host) || (isIP(host) !== 0 && isMetadataAddress(host));
    if (here || excepted.some((fits) => fits(host))) return straight(options, done);
    const port = options.port || (options.protocol === "https:" ? "443" : "80");
    const target = { at: `${options.hostname}:${port}`, timeoutMs };
    openTunnel(new URL(url), target, (error, socket) => {
      if (!socket) done(error!, null);
      else if (options.protocol !== "https:") done(null, socket);
      else within({ ...options, httpSocket: socket }, done);
    });
  };
}

/** Creates an error of the proxy, in contrast to an error of the provider behind it. */
const createProxyError = (message: string, cause?: unknown): Error =>
  Object.assign(new Error(message, { cause }), { code: "proxy_refused" });

function openTunnel(
  proxy: URL,
  { at, timeoutMs }: { readonly at: string; readonly timeoutMs: number },
  done: (error: Error | undefined, socket?: Socket) => void,
): void {
  const request = (proxy.protocol === "https:" ? secure : plain)({
    method: "CONNECT",
    host: proxy.hostname.replace(/^\[|\]$/g, ""),
    port: proxy.port || (proxy.protocol === "https:" ? 443 : 80),
    path: at,
    headers: { host: at, ...authorization(proxy) },
    agent: false,
    signal: AbortSignal.timeout(timeoutMs),
  });
  request.once("connect", (answer: IncomingMessage, socket: Socket, head: Buffer) => {
    if (answer.statusCode === 200 && head.length === 0) return done(undefined, socket);
    socket.destroy();
    const why = answer.statusCode === 200 ? "spoke too early" : `answered ${answer.statusCode}`;
    return done(createProxyError(`The proxy ${why}.`));
  });
  // A proxy that refuses to tunnel sends an ordinary HTTP response.
  request.once("response", (answer) => {
    answer.destroy();
    done(createProxyError(`The proxy returned status ${answer.statusCode}.`));
  });
  request.once("error", (error: NodeJS.ErrnoException) =>
    done(createProxyError(`The proxy cannot be reached: ${error.code ?? error.name}.`, error)),
  );
  request.end();
}

function authorization({ username, password }: URL): Record<string, string> {
  if (username === "" && password === "") return {};
  const userAndPassword = `${decodeURIComponent(username)}:${decodeURIComponent(password)}`;
  return { "proxy-authorization": `Basic ${Buffer.from(userAndPassword).toString("base64")}` };
}

function hostMatcher(pattern: string): (host: string) => boolean {
  const lower = pattern.toLowerCase();
  return (host) => matchesGlob(lower, host.toLowerCase());
}
