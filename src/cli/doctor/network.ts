// Checks the network between the gateway and other machines: DNS, proxies, TLS of providers, and
// whether other machines can reach the port.
import { lookup } from "node:dns/promises";
import { connect as dial } from "node:net";
import { networkInterfaces } from "node:os";
import { connect as secure } from "node:tls";
import type { GatewayConfig } from "../../config/gateway-config.ts";
import { isLoopback } from "../../lib/net/egress-guard.ts";
import { plural } from "../../lib/text.ts";
import {
  errorFinding,
  okFinding,
  noteFinding,
  warningFinding,
  type DoctorFinding,
  CERTIFICATE_DAYS,
  daysLeft,
  expiryState,
  LOOKUP_MS,
} from "./finding.ts";

const WAIT_MS = 5_000;

const PROXY_VARIABLES = [
  "HTTPS_PROXY",
  "https_proxy",
  "HTTP_PROXY",
  "http_proxy",
  "ALL_PROXY",
  "all_proxy",
];

export async function checkProxies(
  { proxy }: Pick<GatewayConfig, "proxy">,
  env: NodeJS.ProcessEnv,
): Promise<readonly DoctorFinding[]> {
  const named = PROXY_VARIABLES.filter((name) => env[name]);
  if (!proxy)
    return named.length === 0
      ? [okFinding("proxy", "no proxy: connections to providers are direct")]
      : [
          warningFinding(
            "proxy/unused",
            `${named.join(", ")} ${named.length === 1 ? "is" : "are"} set, but the gateway does not read proxy variables`,
            `to use the proxy, set proxy: { url: "\${env:${named[0]}}" }`,
          ),
        ];
  const { hostname, port, protocol } = new URL(proxy.url);
  const at = { host: hostname, port: Number(port) || (protocol === "https:" ? 443 : 80) };
  const trouble = await tryConnect(at.host, at.port);
  return [
    trouble === undefined
      ? okFinding("proxy", `requests go through ${at.host}:${at.port}, which accepts connections`)
      : errorFinding(
          "proxy/unreachable",
          `the proxy ${at.host}:${at.port} does not accept connections: ${trouble}`,
          "fix proxy.url, or the network between",
        ),
  ];
}

/**
 * Tries to connect. Resolves with the reason if the connection fails, and with undefined otherwise.
 */
export const tryConnect = (host: string, port: number): Promise<string | undefined> =>
  new Promise((resolve) => {
    const socket = dial({ host: host.replace(/^\[|\]$/g, ""), port, timeout: WAIT_MS });
    const over = (why: string | undefined) => (socket.destroy(), resolve(why));
    socket.once("connect", () => over(undefined));
    socket.once("timeout", () => over("no answer"));
    socket.once("error", (cause: NodeJS.ErrnoException) => over(cause.code ?? cause.message));
  });

/**
 * Checks DNS and the connection to a provider's origin.
 * @param proxied Whether a proxy is used, which resolves the name itself.
 */
export async function checkOrigin(
  provider: string,
  base: URL,
  proxied: boolean,
): Promise<readonly DoctorFinding[]> {
  const host = base.hostname.replace(/^\[|\]$/g, "");
  const id = `providers.${provider}`;
  if (proxied) return [noteFinding(`${id}/dns`, `${provider}: the proxy resolves ${host}`)];
  const began = performance.now();
  const found = await lookup(host, { all: true }).catch((cause: NodeJS.ErrnoException) => cause);
  const ms = Math.round(performance.now() - began);
  if (!Array.isArray(found))
    return [
      errorFinding(
        `${id}/dns`,
        `${provider}: ${host} has no address (${found.code})`,
        "check base_url and /etc/resolv.conf; behind a proxy, set proxy: { url: … }",
      ),
    ];
  return [
    checkLookup(provider, host, { address: found[0]!.address, ms }),
    base.protocol === "https:"
      ? await checkTls(id, provider, base)
      : await checkPlainHttp(id, provider, base),
  ];
}

export const checkLookup = (
  provider: string,
  host: string,
  { address, ms }: { readonly address: string; readonly ms: number },
): DoctorFinding =>
  ms > LOOKUP_MS
    ? warningFinding(
        `providers.${provider}/dns`,
        `${provider}: the DNS lookup of ${host} took ${ms} ms`,
        "run a caching resolver on this machine",
      )
    : okFinding(
        `providers.${provider}/dns`,
        `${provider}: ${host} is ${address}, resolved in ${ms} ms`,
      );

async function checkPlainHttp(id: string, provider: string, base: URL): Promise<DoctorFinding> {
  const trouble = await tryConnect(base.hostname, Number(base.port) || 80);
  return trouble === undefined
    ? okFinding(`${id}/connect`, `${provider}: ${base.host} accepts connections`)
    : errorFinding(
        `${id}/connect`,
        `${provider}: ${base.host} does not accept connections (${trouble})`,
        "start it, or fix base_url",
      );
}

const checkTls = (id: string, provider: string, base: URL): Promise<DoctorFinding> =>
  new Promise((resolve) => {
    const host = base.hostname.replace(/^\[|\]$/g, "");
    const began = performance.now();
    const socket = secure({
      host,
      port: Number(base.port) || 443,
      servername: /^[\d.]+$|:/.test(host) ? "" : host,
      timeout: WAIT_MS,
    });
    const over = (finding: DoctorFinding) => (socket.destroy(), resolve(finding));
    socket.once("secureConnect", () => {
      const ms = Math.round(performance.now() - began);
      const summary = `${provider}: ${socket.getProtocol()} with ${host} in ${ms} ms`;
      over(checkServedCertificate(`${id}/tls`, summary, socket.getPeerCertificate().valid_to));
    });
    const failed = (why: string) =>
      over(
        errorFinding(
          `${id}/tls`,
          `${provider}: the TLS connection to ${base.host} failed (${why})`,
          "behind a proxy that intercepts TLS, set its CA: " +
            "NODE_EXTRA_CA_CERTS=/path/ca.pem; otherwise check base_url and the clock",
        ),
      );
    socket.once("timeout", () => failed("no answer"));
    socket.once("error", (cause: NodeJS.ErrnoException) => failed(cause.code ?? cause.message));
  });

/**
 * Checks when a certificate expires.
 * @param until Expiry date as the certificate contains it.
 */
export function checkServedCertificate(
  id: string,
  summary: string,
  until: string | undefined,
): DoctorFinding {
  const when = expiryState(until, CERTIFICATE_DAYS);
  if (when === "later") return okFinding(id, summary);
  const ends =
    when === "unreadable"
      ? `has an unreadable expiry date: "${until ?? ""}"`
      : `expires in ${plural(Math.floor(daysLeft(until)), "day")}`;
  return warningFinding(id, `${summary}; its certificate ${ends}`, "tell its operator");
}

/**
 * Checks whether other machines can reach the port, as far as this can be determined locally.
 * @param serves Whether a gateway is running.
 */
export async function checkReachable(
  { listen }: Pick<GatewayConfig, "listen">,
  serves: boolean,
): Promise<readonly DoctorFinding[]> {
  const others = Object.values(networkInterfaces()).flatMap((list) =>
    (list ?? []).filter(({ internal, family }) => !internal && family === "IPv4"),
  );
  const found: DoctorFinding[] = [];
  for (const { host, port, socket, tls } of listen) {
    if (socket !== undefined) {
      found.push(okFinding("listen/socket", `${socket}: only this machine`));
      continue;
    }
    const open = !isLoopback(host);
    if (!open) found.push(okFinding("listen/loopback", `${host}:${port}: only this machine`));
    else if (!tls)
      found.push(
        warningFinding(
          "listen/plain",
          `${host}:${port} is reachable from other machines, and keys are sent unencrypted`,
          "set tls: { cert, key }, or put a TLS proxy in front of it",
        ),
      );
    if (!serves || port === 0) continue;
    for (const { address } of others.slice(0, 4)) {
      const trouble = await tryConnect(address, port);
      if (open && trouble !== undefined)
        found.push(
          warningFinding(
            "listen/unreached",
            `${address}:${port} does not accept connections (${trouble})`,
            "check this machine's firewall",
          ),
        );
      else if (open)
        found.push(okFinding("listen/reached", `${address}:${port} accepts connections`));
      else if (trouble === undefined)
        found.push(
          warningFinding(
            "listen/shadowed",
            `${address}:${port} accepts connections, but the gateway does not listen there`,
            "find the process with ss -ltnp",
          ),
        );
    }
  }
  return found;
}
