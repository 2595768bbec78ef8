// X.509 certificates, generated while a rig runs: a root of its own, and leaves that are valid, or
// wrong in one way each.
import { generateKeyPairSync, sign, type KeyObject } from "node:crypto";

/** Form for `tls.createServer`. */
export interface Certified {
  readonly key: string;
  readonly cert: string;
}

export interface Certificates {
  /** Root that the gateway trusts. */
  readonly root: string;
  readonly good: Certified;
  readonly expired: Certified;
  /** For another name. */
  readonly stranger: Certified;
  readonly selfSigned: Certified;
}

const tlv = (tag: number, ...parts: readonly Uint8Array[]): Buffer => {
  const body = Buffer.concat(parts);
  const { length } = body;
  if (length < 0x80) return Buffer.concat([Buffer.from([tag, length]), body]);
  const size = length < 0x100 ? [0x81, length] : [0x82, length >> 8, length & 0xff];
  return Buffer.concat([Buffer.from([tag, ...size]), body]);
};
const sequence = (...parts: readonly Uint8Array[]) => tlv(0x30, ...parts);
const oid = (...bytes: readonly number[]) => tlv(0x06, Buffer.from(bytes));
const integer = (value: number) => tlv(0x02, Buffer.from([value]));
const time = (text: string) => tlv(0x17, Buffer.from(text));

const ECDSA_SHA256 = sequence(oid(0x2a, 0x86, 0x48, 0xce, 0x3d, 0x04, 0x03, 0x02));
const TRUE = Buffer.from([0x01, 0x01, 0xff]);
const named = (of: string) =>
  sequence(tlv(0x31, sequence(oid(0x55, 0x04, 0x03), tlv(0x0c, Buffer.from(of)))));

const SINCE = "200101000000Z";
const UNTIL = "491231000000Z";
const LONG_AGO = "210101000000Z";

interface Subject {
  readonly serial: number;
  readonly name: string;
  readonly since?: string;
  readonly until?: string;
  readonly isRoot?: boolean;
}

interface Signer {
  readonly name: string;
  readonly secret: KeyObject;
}

function extensions({ name, isRoot = false }: Subject): Buffer {
  const constraints = sequence(
    oid(0x55, 0x1d, 0x13),
    TRUE,
    tlv(0x04, isRoot ? sequence(TRUE) : sequence()),
  );
  const alternative = sequence(tlv(0x82, Buffer.from(name)));
  const names = sequence(oid(0x55, 0x1d, 0x11), tlv(0x04, alternative));
  return tlv(0xa3, sequence(constraints, ...(isRoot ? [] : [names])));
}

/** Signed by `by`, or self-signed. */
function certified(subject: Subject, by?: Signer): { made: Certified; signer: Signer } {
  const { publicKey, privateKey: secret } = generateKeyPairSync("ec", { namedCurve: "P-256" });
  const said = sequence(
    tlv(0xa0, integer(2)),
    integer(subject.serial),
    ECDSA_SHA256,
    named(by?.name ?? subject.name),
    sequence(time(subject.since ?? SINCE), time(subject.until ?? UNTIL)),
    named(subject.name),
    publicKey.export({ type: "spki", format: "der" }),
    extensions(subject),
  );
  const signature = sign("sha256", said, by?.secret ?? secret);
  const der = sequence(said, ECDSA_SHA256, tlv(0x03, Buffer.from([0]), signature));
  const lines = der.toString("base64").match(/.{1,64}/g)!;
  const cert = `-----BEGIN CERTIFICATE-----\n${lines.join("\n")}\n-----END CERTIFICATE-----\n`;
  const key = secret.export({ type: "pkcs8", format: "pem" }) as string;
  return { made: { key, cert }, signer: { name: subject.name, secret } };
}

export interface Authority {
  /** Root that others trust. */
  readonly root: string;
  /** `since`, `until`: in UTCTime form, such as `491231000000Z`. */
  issue(of: { readonly name: string; readonly since?: string; readonly until?: string }): Certified;
}

export function authority(name = "Rig"): Authority {
  const root = certified({ serial: 1, name, isRoot: true });
  let serial = 1;
  return {
    root: root.made.cert,
    issue: (of) => certified({ ...of, serial: ++serial }, root.signer).made,
  };
}

/** For a server with this name. */
export function certificates(host: string): Certificates {
  const { root, issue } = authority();
  return {
    root,
    good: issue({ name: host }),
    expired: issue({ name: host, until: LONG_AGO }),
    stranger: issue({ name: "another.test" }),
    selfSigned: certified({ serial: 5, name: host }).made,
  };
}
