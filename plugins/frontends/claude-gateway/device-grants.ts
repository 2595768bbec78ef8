// Sign-ins that are in progress: RFC 8628. A device polls with a device code that only it has. A
// person approves it in a browser with the short user code.
import { createHash, randomBytes, randomInt, timingSafeEqual } from "node:crypto";
import type { OidcTokens } from "tollgate/plugin";
import type { Seal, Sealed, SealedRecords } from "./sealed-records.ts";
import type { WaitingGrants } from "./waiting-grants.ts";

/** Time in which a person must approve a device, in seconds. */
export const GRANT_TTL_S = 600;
/** Letters without vowels, so that codes are no words: RFC 8628, section 6.1. */
const LETTERS = "BCDFGHJKLMNPQRSTVWXZ";
const CODE_LENGTH = 8;
const MAX_DEVICE_CODE = 200;

/** A person whom the identity provider identified. */
export interface SignedInPerson {
  readonly claims: OidcTokens["claims"];
  readonly refreshToken: string | undefined;
}

export interface DeviceGrant {
  readonly deviceHash: string;
  readonly state: "pending" | "identified" | "approved" | "denied" | "used";
  /** Address and program of the device, which the page shows. */
  readonly address: string;
  readonly surface: string | undefined;
  readonly userCode: string;
  /** Hash of the secret of the browser that handles the grant. */
  readonly browser?: string | undefined;
  readonly person?: SignedInPerson | undefined;
}

export type StoredGrant = Sealed<DeviceGrant>;

/** Error codes of the token endpoint while a device waits. */
export type DeviceProblem =
  | "authorization_pending"
  | "slow_down"
  | "access_denied"
  | "expired_token";

export const hashOf = (text: string): string =>
  createHash("sha256").update(text).digest("base64url");

export interface DeviceGrantsOptions {
  readonly records: SealedRecords<DeviceGrant>;
  readonly seal: Seal;
  readonly waiting: WaitingGrants;
  readonly now: () => number;
  /** Minimum time between two polls of a device. */
  readonly intervalMs: number;
}

export class DeviceGrants {
  readonly #of: DeviceGrantsOptions;
  /** Time of the last poll by grant, in this process. */
  readonly #polls = new Map<string, number>();

  constructor(of: DeviceGrantsOptions) {
    this.#of = of;
  }

  /** Starts a sign-in. Returns undefined if too many sign-ins of the network wait for approval. */
  async start(of: Pick<DeviceGrant, "address" | "surface">) {
    const { records, waiting, now } = this.#of;
    for (;;) {
      const userCode = createUserCode();
      const secret = randomBytes(32).toString("base64url");
      const id = this.#idOf(userCode);
      const expiresAt = now() + GRANT_TTL_S * 1_000;
      const added = waiting.add(id, { address: of.address, expiresAt, now: now() });
      if (added === "refused") return undefined;
      let made: unknown;
      try {
        made = await records.create(id, {
          key: "sign-in",
          data: { ...of, deviceHash: hashOf(secret), state: "pending", userCode },
          expiresAt,
        });
      } finally {
        if (!made) waiting.remove(id, of.address);
      }
      const { ended } = added;
      // A sign-in that a person has completed at the identity provider continues.
      if (ended !== undefined) await records.delete(ended, ({ state }) => state === "pending");
      if (made) return { userCode, deviceCode: `${id}.${secret}` };
    }
  }

  /** Returns a grant that can be approved. */
  async findByUserCode(text: string): Promise<StoredGrant | undefined> {
    const code = normalizeUserCode(text);
    const grant = code === undefined ? undefined : await this.#of.records.find(this.#idOf(code));
    return grant && isOpen(grant) ? grant : undefined;
  }

  /** Returns the open grant that this browser handles. */
  async findForBrowser(id: string, browser: string): Promise<StoredGrant | undefined> {
    const grant = await this.#of.records.find(id);
    return grant && isOpen(grant) && grant.data.browser === hashOf(browser) ? grant : undefined;
  }

  /** Returns false if the grant was changed in the meantime. */
  async change(grant: StoredGrant, change: Partial<DeviceGrant>): Promise<boolean> {
    return (await this.#of.records.replace(grant, { ...grant.data, ...change })) !== undefined;
  }

  /** Returns the person who approved the device, once. */
  async redeem(deviceCode: string): Promise<SignedInPerson | DeviceProblem> {
    const [id = "", secret = ""] = deviceCode.split(".");
    if (deviceCode.length > MAX_DEVICE_CODE || !/^dev_[0-9a-f]{40}$/.test(id))
      return "expired_token";
    const grant = await this.#of.records.find(id);
    if (!grant || !equal(grant.data.deviceHash, hashOf(secret))) return "expired_token";
    const { state, person } = grant.data;
    if (state === "denied") return "access_denied";
    if (state === "used") return "expired_token";
    if (state !== "approved" || !person)
      return this.#isTooFast(id) ? "slow_down" : "authorization_pending";
    // The grant is kept until it expires, so that the code cannot be used again.
    const used = await this.change(grant, { state: "used", person: undefined });
    return used ? person : "expired_token";
  }

  #isTooFast(id: string): boolean {
    const now = this.#of.now();
    const last = this.#polls.get(id) ?? -Infinity;
    this.#polls.delete(id);
    this.#polls.set(id, now);
    if (this.#polls.size > MAX_POLLS) this.#polls.delete(this.#polls.keys().next().value!);
    // A clock that was set back must not slow a device down.
    return now >= last && now - last < this.#of.intervalMs * POLL_TOLERANCE;
  }

  #idOf(userCode: string): string {
    return `dev_${this.#of.seal.hide(`user code ${userCode}`)}`;
  }
}

const MAX_POLLS = 10_000;
/** Part of the interval after which a poll is accepted, because requests take different times. */
const POLL_TOLERANCE = 0.8;

const isOpen = ({ data }: StoredGrant): boolean =>
  data.state === "pending" || data.state === "identified";

function equal(a: string, b: string): boolean {
  const [x, y] = [Buffer.from(a), Buffer.from(b)];
  return x.length === y.length && timingSafeEqual(x, y);
}

function createUserCode(): string {
  const letters = Array.from({ length: CODE_LENGTH }, () => LETTERS[randomInt(LETTERS.length)]);
  return `${letters.slice(0, 4).join("")}-${letters.slice(4).join("")}`;
}

/** Returns the code as it was issued. People omit the dash and use lower case. */
function normalizeUserCode(text: string): string | undefined {
  if (text.length > 40) return undefined;
  const letters = text.toUpperCase().replace(/[\s-]/g, "");
  return letters.length === CODE_LENGTH && [...letters].every((one) => LETTERS.includes(one))
    ? `${letters.slice(0, 4)}-${letters.slice(4)}`
    : undefined;
}
