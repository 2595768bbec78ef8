// Admins: what is let in here, with which role, and which sessions are open now.
import { html } from "htm/preact";
import { useState } from "preact/hooks";
import { useAct } from "../act.ts";
import { type Answer, useAsk } from "../data.ts";
import { icon } from "../parts/icons.ts";
import { Select, Text } from "../parts/fields.ts";
import { Dialog } from "../parts/over.ts";
import { Box, CopyButton, Empty, Mark, NoteBox, SameAs, Shown, Trouble } from "../parts/plain.ts";
import { Table } from "../parts/table.ts";
import { toast } from "../parts/toasts.ts";
import { may } from "../rights.ts";
import { ago, moment } from "../words.ts";

interface Admin {
  readonly id: string;
  readonly name?: string;
  readonly role: string;
  readonly account?: string;
  readonly created: number;
  readonly expires?: number;
  readonly state: "valid" | "expired" | "ended";
}
interface Session {
  readonly id: string;
  readonly name: string;
  readonly role: string;
  readonly within?: string;
  readonly address: string;
  readonly began: number;
  readonly used: number;
  readonly until: number;
}

const ROLES = [
  ["viewer", "viewer: reads everything"],
  ["operator", "operator: changes what can be changed back"],
  ["owner", "owner: may do all"],
  ["metrics", "metrics: reads counts and times"],
] as const;

export function Admins() {
  const admins = useAsk<{ admins: readonly Admin[] }>("admins.list", {}, { every: 15_000 });
  const sessions = useAsk<{ sessions: readonly Session[] }>("sessions.list", {}, { every: 10_000 });
  const [making, make] = useState(false);
  return html` <div class="row">
      <span class="grow quiet">Tokens of gateway.yaml stand there and are not listed here.</span>
      ${may("admins.create") && html`<button type="button" class="button main" onClick=${() => make(true)}>${icon("accounts")}New admin</button>`}
    </div>
    <${Shown} of=${admins}
      >${({ admins: rows }: { admins: readonly Admin[] }) => html`<${AdminTable} rows=${rows} again=${admins.again} />`}<//
    >
    ${may("sessions.list") && html`<${Sessions} of=${sessions} />`}
    <${SameAs} line="tollgate admins list" />
    ${making && html`<${NewAdmin} close=${() => make(false)} made=${admins.again} />`}`;
}

function AdminTable({ rows, again }: { rows: readonly Admin[]; again: () => void }) {
  const end = useAct<unknown>("admins.end");
  const run = async (one: Admin) => {
    if (!(await end.run({ id: one.id }))) return;
    toast(`${one.name ?? one.id} is ended, with its sessions.`);
    again();
  };
  return html`<${Box} flush=${true} title="Admins">
    ${end.problem && html`<${Trouble} problem=${end.problem} />`}
    <${Table}
      label="Admins"
      rows=${rows}
      id=${(row: Admin) => row.id}
      empty=${html`<${Empty} of="audit"><p>None was made yet. An admin has a token of its own, which opens this console and no model.</p><//>`}
      columns=${[...ADMINS, { name: "", of: (row: Admin) => row.state === "valid" && may("admins.end") && html`<${Sure} what=${`End ${row.name ?? row.id}`} run=${() => run(row)} />` }]}
    />
  <//>`;
}

const ADMINS = [
  {
    name: "Admin",
    head: true,
    by: (row: Admin) => row.name ?? row.id,
    of: (row: Admin) => html`<span class="break">${row.name ?? row.id}</span>`,
  },
  {
    name: "State",
    of: (row: Admin) =>
      html`<${Mark} tone=${row.state === "valid" ? "good" : "bad"}>${row.state}<//>`,
  },
  {
    name: "Role",
    by: (row: Admin) => row.role,
    of: (row: Admin) =>
      html`${row.role}${row.account && html`<div class="small faint">of ${row.account}</div>`}`,
  },
  {
    name: "Made",
    by: (row: Admin) => row.created,
    of: (row: Admin) =>
      html`<span class="nowrap" title=${moment(row.created)}>${ago(row.created)}</span>`,
  },
  {
    name: "Ends",
    of: (row: Admin) =>
      row.expires
        ? html`<span class="nowrap" title=${moment(row.expires)}>${ago(row.expires)}</span>`
        : html`<span class="faint">never</span>`,
  },
];

/** Asks once more before it is done. */
function Sure({ what, run }: { what: string; run: () => void }) {
  const [sure, set] = useState(false);
  return sure
    ? html`<span class="row"
        ><button type="button" class="button small danger" onClick=${run}>Yes</button
        ><button type="button" class="button small" onClick=${() => set(false)}>No</button></span
      >`
    : html`<button
        type="button"
        class="button small"
        aria-description=${what}
        onClick=${() => set(true)}
      >
        End
      </button>`;
}

function Sessions({ of }: { of: Answer<{ sessions: readonly Session[] }> }) {
  const end = useAct<{ ended: number }>("sessions.end");
  const run = async (id?: string) => {
    const done = await end.run(id === undefined ? {} : { id });
    if (!done) return;
    toast(`${done.ended} signed out.`);
    of.again();
  };
  return html`<${Box}
    flush=${true}
    title="Signed in now"
    actions=${may("sessions.end") && html`<${Sure} what="Sign all out" run=${() => void run()} />`}
  >
    ${end.problem && html`<${Trouble} problem=${end.problem} />`}
    <${Shown} of=${of}
      >${({ sessions }: { sessions: readonly Session[] }) =>
        html`<${Table}
          label="Sessions"
          rows=${sessions}
          id=${(row: Session) => row.id}
          empty=${html`<${Empty} of="audit"><p>No session is open.</p><//>`}
          columns=${[...SESSIONS, { name: "", of: (row: Session) => html`<${Sure} what=${`Sign ${row.name} out`} run=${() => void run(row.id)} />` }]}
        />`}<//
    >
  <//>`;
}

const SESSIONS = [
  {
    name: "Session of",
    head: true,
    of: (row: Session) => html`<span class="break">${row.name}</span>`,
  },
  {
    name: "Role",
    of: (row: Session) =>
      html`${row.role}${row.within && html`<div class="small faint">of ${row.within}</div>`}`,
  },
  { name: "From", of: (row: Session) => html`<code>${row.address}</code>` },
  {
    name: "Since",
    of: (row: Session) =>
      html`<span class="nowrap" title=${moment(row.began)}>${ago(row.began)}</span>`,
  },
  { name: "Seen", of: (row: Session) => html`<span class="nowrap">${ago(row.used)}</span>` },
  {
    name: "Ends",
    of: (row: Session) =>
      html`<span class="nowrap" title=${moment(row.until)}>${ago(row.until)}</span>`,
  },
];

function NewAdmin({ close, made }: { close: () => void; made: () => void }) {
  const [name, setName] = useState("");
  const [role, setRole] = useState("viewer");
  const [account, setAccount] = useState("");
  const [ends, end] = useState("");
  const create = useAct<{ secret: string; admin: Admin }>("admins.create");
  const submit = async (event: Event) => {
    event.preventDefault();
    const done = await create.run({
      name: name.trim(),
      role,
      account: account.trim() || undefined,
      expires: ends ? Date.parse(ends) : undefined,
    });
    if (done) made();
  };
  if (create.value)
    return html`<${Dialog} title=${`${create.value.admin.name} is made`} close=${close}>
      <${NoteBox} tone="good"
        ><p>This is the only time that the token is shown.</p>
        <div class="row">
          <span class="secret grow">${create.value.secret}</span
          ><${CopyButton} text=${create.value.secret} name="Copy the token" /></div
      ><//>
      <footer><button type="button" class="button main" onClick=${close}>Done</button></footer>
    <//>`;
  return html`<${Dialog} title="New admin" close=${close}>
    <form class="form" onSubmit=${submit}>
      <${Text}
        name="Name"
        value=${name}
        set=${setName}
        required=${true}
        hint="The audit log says it."
      />
      <${Select} name="Role" value=${role} set=${setRole} of=${ROLES} />
      <div class="filters">
        <${Text}
          name="Held to an account"
          wide=${true}
          value=${account}
          set=${setAccount}
          placeholder="all of it"
        />
        <${Text} name="Ends" type="datetime-local" value=${ends} set=${end} />
      </div>
      ${create.problem && html`<${Trouble} problem=${create.problem} />`}
      <footer>
        <button type="button" class="button" onClick=${close}>Cancel</button
        ><button type="submit" class="button main" disabled=${create.busy || name.trim() === ""}>
          Make the admin
        </button>
      </footer>
    </form>
  <//>`;
}
