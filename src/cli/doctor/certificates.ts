// Checks the gateway's own certificates: the certificates that its listeners send, and the
// certificates of the authorities that sign client certificates.
import type { X509Certificate } from "node:crypto";
import { isIP } from "node:net";
import { connect as secure } from "node:tls";
import type { ListenTls } from "../../config/sections/network-config.ts";
import type { GatewayConfig } from "../../config/gateway-config.ts";
import { loadTlsContext } from "../../runtime/http/tls.ts";
import { readCertificates } from "../../runtime/health/certificate-stats.ts";
import { isLoopback } from "../../lib/net/egress-guard.ts";
import { plural } from "../../lib/text.ts";
import { publicErrorText } from "../../model/error.ts";
import { shortPath } from "../format/problem-report.ts";
import {
  errorFinding,
  okFinding,
  warningFinding,
  type DoctorFinding,
  CERTIFICATE_DAYS,
  daysLeft,
  expiryState,
} from "./finding.ts";

/** A listener with TLS. */
interface TlsListener {
  /** Config key that names its files: "listen.tls", "admin.tls". */
  readonly key: string;
  readonly tls: ListenTls;
  /** Host names that clients use, as far as gateway.yaml contains them. */
  readonly names: readonly string[];
  /** Address at which a running gateway sends the certificate. */
  readonly at: { readonly host: string; readonly port: number } | undefined;
}

const WILDCARD_HOSTS = new Set(["0.0.0.0", "::"]);
const clientNames = (host: string, hosts: readonly string[]): readonly string[] => [
  ...(WILDCARD_HOSTS.has(host) || isLoopback(host) ? [] : [host]),
  ...hosts,
];

function tlsListeners({ listen, admin }: GatewayConfig): readonly TlsListener[] {
  const shown: TlsListener[] = listen.flatMap(({ host, port, hosts, tls }) =>
    tls ? [{ key: "listen.tls", tls, names: clientNames(host, hosts), at: { host, port } }] : [],
  );
  if (!admin?.tls) return shown;
  const tls: ListenTls = { ...admin.tls, minVersion: "TLSv1.2", clientCertificates: undefined };
  const at = "socket" in admin.address ? undefined : admin.address;
  return [
    ...shown,
    { key: "admin.tls", tls, names: clientNames(at?.host ?? "::1", admin.hosts), at },
  ];
}

/**
 * Checks the certificates of all listeners.
 * @param serves Whether a gateway is running, whose listeners can be connected to.
 */
export async function checkCertificates(
  config: GatewayConfig,
  serves: boolean,
): Promise<readonly DoctorFinding[]> {
  const all = await Promise.all(tlsListeners(config).map((each) => checkListener(each, serves)));
  return all.flat();
}

async function checkListener(of: TlsListener, serves: boolean): Promise<readonly DoctorFinding[]> {
  const { key, tls } = of;
  const file = shortPath(tls.cert);
  let chain: readonly X509Certificate[];
  let signers: readonly X509Certificate[] = [];
  try {
    // The files are loaded in the same way as by the listener: both are read, and the key must
    // match the certificate.
    await loadTlsContext(tls, key);
    chain = await readCertificates(tls.cert);
    if (tls.clientCertificates) signers = await readCertificates(tls.clientCertificates.ca);
  } catch (cause) {
    return [
      errorFinding(
        `${key}/files`,
        publicErrorText(cause),
        "fix the files that gateway.yaml names there",
      ),
    ];
  }
  const [own, ...above] = chain as [X509Certificate, ...X509Certificate[]];
  const found: DoctorFinding[] = [
    ...checkExpiry(own, `${key}/ends`, `the certificate in ${file}`),
    ...above.flatMap((one) => checkExpiry(one, `${key}/ends`, describeCertificate(one, file))),
    ...checkChainOrder(chain, key, file),
    ...checkNames(own, of, file),
    ...signers.flatMap((one) =>
      checkExpiry(
        one,
        `${key}/clients`,
        describeCertificate(one, shortPath(tls.clientCertificates!.ca)),
      ),
    ),
  ];
  if (serves && of.at) found.push(...(await checkServed(own, of.at, key, file)));
  if (found.length > 0) return found;
  const days = plural(Math.floor(daysLeft(own.validTo)), "day");
  return [
    okFinding(`${key}/certificate`, `${file} is for ${subjectNames(own)}, and valid for ${days}`),
  ];
}

const describeCertificate = (one: X509Certificate, file: string) =>
  `"${commonName(one)}" in ${file}`;

const subjectNames = ({ subjectAltName }: X509Certificate): string =>
  subjectAltName?.replaceAll(/(DNS|IP Address):/g, "") ?? "no name";

const commonName = ({ subject }: X509Certificate): string =>
  /^CN=(.*)$/m.exec(subject)?.[1] ?? subject.replaceAll("\n", ", ");

const RENEW_TEXT =
  "renew it and write it to the same files: they are watched, and no restart is needed";

function checkExpiry(one: X509Certificate, id: string, what: string): readonly DoctorFinding[] {
  if (daysLeft(one.validFrom) > 0)
    return [
      errorFinding(
        id,
        `${what} is not valid before ${one.validFrom}`,
        "check the clock; otherwise wait, or use the previous certificate",
      ),
    ];
  const days = Math.floor(daysLeft(one.validTo));
  switch (expiryState(one.validTo, CERTIFICATE_DAYS)) {
    case "over":
      return [errorFinding(id, `${what} expired on ${one.validTo}`, RENEW_TEXT)];
    case "soon":
      return [
        warningFinding(
          id,
          `${what} expires in ${plural(days, "day")}, on ${one.validTo}`,
          RENEW_TEXT,
        ),
      ];
    case "unreadable":
      return [
        warningFinding(id, `${what} has an unreadable expiry date: "${one.validTo}"`, RENEW_TEXT),
      ];
    case "later":
      return [];
  }
}

/**
 * Checks that each certificate in the file is followed by its issuer, because clients follow that
 * order.
 */
function checkChainOrder(
  chain: readonly X509Certificate[],
  key: string,
  file: string,
): readonly DoctorFinding[] {
  const at = chain.findIndex((one, i) => i > 0 && !chain[i - 1]!.checkIssued(one));
  if (at < 0) return [];
  return [
    warningFinding(
      `${key}/chain`,
      `in ${file}, "${commonName(chain[at]!)}" is not the issuer of the certificate before it`,
      "order the chain: the gateway's own certificate first, then each issuer",
    ),
  ];
}

/**
 * Checks that the certificate is valid for the configured names. If gateway.yaml contains no name,
 * the names that clients use are unknown.
 */
function checkNames(
  own: X509Certificate,
  { key, names: wanted }: TlsListener,
  file: string,
): readonly DoctorFinding[] {
  const not = wanted.filter((name) => {
    const bare = name.replace(/^\[|\]$/g, "");
    return isIP(bare)
      ? own.checkIP(bare) === undefined
      : own.checkHost(bare, { subject: "never" }) === undefined;
  });
  if (not.length === 0) return [];
  return [
    warningFinding(
      `${key}/names`,
      `${file} does not cover ${not.join(", ")}; it is for ${subjectNames(own)}`,
      `reissue the certificate for these names, or remove them from ${key.split(".")[0]}`,
    ),
  ];
}

const WAIT_MS = 5_000;

/**
 * Checks that the listener sends the certificate in the file. If not, the gateway has not loaded
 * the file.
 */
async function checkServed(
  own: X509Certificate,
  { host, port }: { readonly host: string; readonly port: number },
  key: string,
  file: string,
): Promise<readonly DoctorFinding[]> {
  if (port === 0) return [];
  const shown = await new Promise<X509Certificate | undefined>((resolve) => {
    const socket = secure({
      host: host === "0.0.0.0" ? "127.0.0.1" : host === "::" ? "::1" : host,
      port,
      timeout: WAIT_MS,
      // Verification is off, because the certificate is compared byte for byte with the certificate
      // in the file.
      rejectUnauthorized: false,
    });
    const over = (one: X509Certificate | undefined) => (socket.destroy(), resolve(one));
    socket.once("secureConnect", () => over(socket.getPeerX509Certificate()));
    socket.once("timeout", () => over(undefined));
    socket.once("error", () => over(undefined));
  });
  if (shown === undefined)
    return [
      warningFinding(
        `${key}/served`,
        `${host}:${port} does not respond with TLS`,
        "run tollgate status, and check the gateway log",
      ),
    ];
  if (shown.raw.equals(own.raw)) return [];
  return [
    warningFinding(
      `${key}/served`,
      `${host}:${port} serves a different certificate than ${file}: it expires on ${shown.validTo}`,
      "the gateway log has the reason; changed paths need a restart",
    ),
  ];
}
