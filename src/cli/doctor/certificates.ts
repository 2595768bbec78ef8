// The gateway's own certificates: those that its listeners show, and those of the authorities that sign its clients'.
import type { X509Certificate } from "node:crypto";
import { isIP } from "node:net";
import { connect as secure } from "node:tls";
import type { ListenTls } from "../../config/lines.ts";
import type { GatewayConfig } from "../../config/types.ts";
import { contextOf } from "../../gateway/http/tls.ts";
import { certificatesIn } from "../../gateway/readings/certificates.ts";
import { isLoopback } from "../../lib/egress.ts";
import { plural } from "../../lib/text.ts";
import { sayable } from "../../model/error.ts";
import { near } from "../report.ts";
import { error, fine, warning, type DoctorFinding } from "./finding.ts";
import { CERTIFICATE_DAYS, daysLeft, ending } from "./thresholds.ts";

/** One listener with TLS. */
interface Shown {
  /** What names its files in gateway.yaml: "listen.tls", "admin.tls". */
  readonly key: string;
  readonly tls: ListenTls;
  /** Names that its clients use, as far as the file says them. */
  readonly names: readonly string[];
  /** Where a gateway that runs shows it. */
  readonly at: { readonly host: string; readonly port: number } | undefined;
}

const ANY = new Set(["0.0.0.0", "::"]);
const named = (host: string, hosts: readonly string[]): readonly string[] => [
  ...(ANY.has(host) || isLoopback(host) ? [] : [host]),
  ...hosts,
];

function listeners({ listen, admin }: GatewayConfig): readonly Shown[] {
  const shown: Shown[] = listen.flatMap(({ host, port, hosts, tls }) =>
    tls ? [{ key: "listen.tls", tls, names: named(host, hosts), at: { host, port } }] : [],
  );
  if (!admin?.tls) return shown;
  const tls: ListenTls = { ...admin.tls, minVersion: "TLSv1.2", clients: undefined };
  const at = "socket" in admin.at ? undefined : admin.at;
  return [...shown, { key: "admin.tls", tls, names: named(at?.host ?? "::1", admin.hosts), at }];
}

/** `serves`: a gateway runs, and may be asked what it shows. */
export async function certificates(
  config: GatewayConfig,
  serves: boolean,
): Promise<readonly DoctorFinding[]> {
  const all = await Promise.all(listeners(config).map((each) => judged(each, serves)));
  return all.flat();
}

async function judged(of: Shown, serves: boolean): Promise<readonly DoctorFinding[]> {
  const { key, tls } = of;
  const file = near(tls.cert);
  let chain: readonly X509Certificate[];
  let signers: readonly X509Certificate[] = [];
  try {
    // As the listener itself does: both files are read, and the key is tried on the certificate.
    await contextOf(tls, key);
    chain = await certificatesIn(tls.cert);
    if (tls.clients) signers = await certificatesIn(tls.clients.ca);
  } catch (cause) {
    return [error(`${key}/files`, sayable(cause), "mend the files that gateway.yaml names there")];
  }
  const [own, ...above] = chain as [X509Certificate, ...X509Certificate[]];
  const found: DoctorFinding[] = [
    ...times(own, `${key}/ends`, `the certificate in ${file}`),
    ...above.flatMap((one) => times(one, `${key}/ends`, calledIn(one, file))),
    ...order(chain, key, file),
    ...names(own, of, file),
    ...signers.flatMap((one) => times(one, `${key}/clients`, calledIn(one, near(tls.clients!.ca)))),
  ];
  if (serves && of.at) found.push(...(await served(own, of.at, key, file)));
  if (found.length > 0) return found;
  const days = plural(Math.floor(daysLeft(own.validTo)), "day");
  return [fine(`${key}/certificate`, `${file} is for ${namesOf(own)}, and good for ${days}`)];
}

const calledIn = (one: X509Certificate, file: string) => `"${commonName(one)}" in ${file}`;

const namesOf = ({ subjectAltName }: X509Certificate): string =>
  subjectAltName?.replaceAll(/(DNS|IP Address):/g, "") ?? "no name";

const commonName = ({ subject }: X509Certificate): string =>
  /^CN=(.*)$/m.exec(subject)?.[1] ?? subject.replaceAll("\n", ", ");

const RENEW =
  "renew it and write it to the same files: they are watched, and nothing is started again";

function times(one: X509Certificate, id: string, what: string): readonly DoctorFinding[] {
  if (daysLeft(one.validFrom) > 0)
    return [
      error(
        id,
        `${what} is not valid before ${one.validFrom}`,
        "look at the clock; else wait, or use the one before",
      ),
    ];
  const days = Math.floor(daysLeft(one.validTo));
  switch (ending(one.validTo, CERTIFICATE_DAYS)) {
    case "over":
      return [error(id, `${what} ended on ${one.validTo}`, RENEW)];
    case "soon":
      return [warning(id, `${what} ends in ${plural(days, "day")}, on ${one.validTo}`, RENEW)];
    case "unreadable":
      return [warning(id, `${what} does not say when it ends: "${one.validTo}"`, RENEW)];
    case "later":
      return [];
  }
}

/** Clients follow the file from one certificate to the next. */
function order(
  chain: readonly X509Certificate[],
  key: string,
  file: string,
): readonly DoctorFinding[] {
  const at = chain.findIndex((one, i) => i > 0 && !chain[i - 1]!.checkIssued(one));
  if (at < 0) return [];
  return [
    warning(
      `${key}/chain`,
      `in ${file}, "${commonName(chain[at]!)}" is not who issued the certificate before it`,
      "write the gateway's own first, and after each the one that issued it",
    ),
  ];
}

/** Without a name in gateway.yaml nothing says what clients use. */
function names(
  own: X509Certificate,
  { key, names: wanted }: Shown,
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
    warning(
      `${key}/names`,
      `${file} is not for ${not.join(", ")}; it is for ${namesOf(own)}`,
      `let its authority put that name into it, or take the name out of ${key.split(".")[0]}`,
    ),
  ];
}

const WAIT_MS = 5_000;

/** What is shown is what is in the file, or the gateway has not taken it. */
async function served(
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
      // It is compared, byte for byte, with the one that is wanted.
      rejectUnauthorized: false,
    });
    const over = (one: X509Certificate | undefined) => (socket.destroy(), resolve(one));
    socket.once("secureConnect", () => over(socket.getPeerX509Certificate()));
    socket.once("timeout", () => over(undefined));
    socket.once("error", () => over(undefined));
  });
  if (shown === undefined)
    return [
      warning(
        `${key}/served`,
        `${host}:${port} does not speak TLS now`,
        "tollgate status, and its log",
      ),
    ];
  if (shown.raw.equals(own.raw)) return [];
  return [
    warning(
      `${key}/served`,
      `${host}:${port} shows another certificate than ${file} has: it ends on ${shown.validTo}`,
      "its log says why the new one was not taken; a change of paths needs a restart",
    ),
  ];
}
