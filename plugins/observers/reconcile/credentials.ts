// Divides a bill among the credentials of the gateway. Providers bill by project, and count usage by
// API key. The cost of a project is therefore divided among its keys in proportion to their usage.
import { distribute, modelKey, type BillLine } from "./bill-line.ts";

/** Credentials by the provider's ID of an API key, a project, a workspace, or an account. */
export type CredentialMap = ReadonlyMap<string, string>;

/** A line that belongs to one credential. */
export interface DividedLine extends BillLine {
  /** Undefined for usage of other keys and projects, and for lines that cannot be divided. */
  readonly credential: string | undefined;
}

export interface DividedBill {
  readonly lines: readonly DividedLine[];
  /** Returns the credential under which calls of a model on a day are compared. */
  credentialOf(day: string, model: string, credential: string): string | undefined;
}

const groupOf = (day: string, model: string): string => `${day}\n${modelKey(model)}`;

/** Counts by owner, for one unit of a project. The owner of other keys is undefined. */
type Shares = Map<string | undefined, bigint>;

export function divideBill(lines: readonly BillLine[], credentials: CredentialMap): DividedBill {
  const ownerOf = ({ key, project }: BillLine): string | undefined =>
    (key === undefined ? undefined : credentials.get(key)) ??
    (project === undefined ? undefined : credentials.get(project));
  const byProject = Map.groupBy(lines, ({ project }) => project);
  const ownersIn = new Map(
    [...byProject].map(([project, its]) => [
      project,
      new Set(its.map(ownerOf).filter((owner) => owner !== undefined)),
    ]),
  );
  const undivided = new Set<string>();
  const divided: DividedLine[] = [];
  for (const [group, members] of Map.groupBy(lines, ({ day, model }) =>
    model === undefined ? "" : groupOf(day, model),
  )) {
    const shares = readShares(members, ownerOf);
    const parts: DividedLine[] = [];
    for (const line of members) {
      if (line.isShare === true) continue;
      const owner = ownerOf(line);
      const share = line.key === undefined ? shares.get(shareOf(line)) : undefined;
      const owners = ownersIn.get(line.project)!;
      if (group === "") parts.push({ ...line, credential: undefined });
      else if (share) parts.push(...divideLine(line, share));
      else if (owner !== undefined || line.key !== undefined || owners.size === 0)
        parts.push({ ...line, credential: owner });
      else if (owners.size === 1) parts.push({ ...line, credential: [...owners][0] });
      else undivided.add(group);
    }
    if (undivided.has(group))
      for (const line of members)
        if (line.isShare !== true) divided.push({ ...line, credential: undefined });
    if (!undivided.has(group)) divided.push(...parts);
  }
  const mapped = new Set(credentials.values());
  return {
    lines: divided,
    credentialOf: (day, model, credential) =>
      mapped.has(credential) && !undivided.has(groupOf(day, model)) ? credential : undefined,
  };
}

const shareOf = ({ project, unit }: BillLine): string => `${project ?? ""}\n${unit ?? ""}`;

function readShares(
  lines: readonly BillLine[],
  ownerOf: (line: BillLine) => string | undefined,
): ReadonlyMap<string, Shares> {
  const shares = new Map<string, Shares>();
  for (const line of lines) {
    if (line.key === undefined || line.unit === undefined || !(line.count ?? 0n)) continue;
    const id = shareOf(line);
    const counts = shares.get(id) ?? new Map();
    const owner = ownerOf(line);
    counts.set(owner, (counts.get(owner) ?? 0n) + line.count!);
    shares.set(id, counts);
  }
  return shares;
}

/** Divides a line. The parts add up to the line exactly. */
function divideLine(line: BillLine, share: Shares): readonly DividedLine[] {
  const owners = [...share.keys()];
  const weights = [...share.values()];
  const picos = line.pico === undefined ? undefined : distribute(line.pico, weights);
  const counts = line.count === undefined ? undefined : distribute(line.count, weights);
  return owners.map((credential, i) => ({
    ...line,
    credential,
    pico: picos?.[i],
    count: counts?.[i],
  }));
}
