// The messenger's page: shows what the app's views say and posts what the person does. The node is the only one who
// knows; the page keeps nothing but drafts. Texts reach the page by textContent alone.
"use strict";

const REOPEN_AFTER_MS = { first: 500, most: 5000 };
const SEARCH_AFTER_MS = 200; // a person goes on typing for as long
const KEY_EVERY_MS = 3000; // the app takes typing for over after 6 s
const SIGNS = { waiting: "◌", delivered: "✓", read: "✓✓", refused: "✗" };
const WORDS = { waiting: "waiting", delivered: "delivered", read: "read", refused: "refused" };

const at = (id) => document.getElementById(id);
const page = {
  peer: null, // whose conversation is open: a node id
  people: [],
  lines: [], // oldest first
  drafts: new Map(), // by peer
  unanswered: new Map(), // by peer: { text, key } of a line whose post was not answered
  posting: false,
  opening: false, // an `open` is being posted
  openAgain: false, // people changed meanwhile
  wanted: null, // the id of the line that a search led to, until it is shown
};

// Talking to the node.

async function post(input, fields, key) {
  const headers = { "Content-Type": "application/json" };
  if (key) headers["Idempotency-Key"] = key;
  let response;
  try {
    response = await fetch(`/messenger/${input}`, { method: "POST", headers, body: JSON.stringify(fields) });
  } catch {
    throw new Error("node not reachable");
  }
  if (response.ok) return;
  const body = await response.json().catch(() => null);
  throw new Error(body?.error?.message ?? `the node answered ${response.status}`);
}

// Chance from getRandomValues, since randomUUID is only there on https and loopback.
function newKey() {
  return Array.from(crypto.getRandomValues(new Uint8Array(16)), (byte) => byte.toString(16).padStart(2, "0")).join("");
}

// A view as it changes; reopens by itself until closed, also after an answer that EventSource takes for final.
function watch(view, show, state) {
  let source = null;
  let timer = null;
  let pause = REOPEN_AFTER_MS.first;
  const open = () => {
    source = new EventSource(`/messenger/${view}`);
    source.onmessage = (event) => {
      pause = REOPEN_AFTER_MS.first;
      state(true);
      show(JSON.parse(event.data));
    };
    source.onerror = (event) => {
      source.close();
      state(event.data !== undefined); // with data it is the node's word that the view failed
      timer = setTimeout(open, pause);
      pause = Math.min(pause * 2, REOPEN_AFTER_MS.most);
    };
  };
  open();
  return { close() { clearTimeout(timer); source.close(); } };
}

function reachable(yes) {
  at("offline").hidden = yes;
  if (yes && at("node-id").textContent === "…") showNode();
}

async function showNode() {
  try {
    const response = await fetch("/", { headers: { Accept: "application/json" } });
    at("node-id").textContent = (await response.json()).node;
  } catch {
    // Shown as soon as the node is reachable.
  }
}

// People.

function element(name, className, text) {
  const made = document.createElement(name);
  if (className) made.className = className;
  if (text !== undefined) made.textContent = text;
  return made;
}

function paintAvatar(avatar, name, node) {
  let sum = 0;
  for (const character of node) sum = (sum * 31 + character.codePointAt(0)) % 6007;
  avatar.className = `avatar hue-${sum % 6}`;
  avatar.textContent = (Array.from(name.trim())[0] ?? "?").toUpperCase();
}

function verifiedMark() {
  const mark = element("span", "verified", "✓");
  mark.title = "verified: you have compared the node id";
  mark.setAttribute("role", "img");
  mark.setAttribute("aria-label", "verified");
  return mark;
}

function newPerson(node) {
  const link = element("a", "person");
  link.href = `#${node}`;
  const avatar = element("span", "avatar");
  avatar.setAttribute("aria-hidden", "true");
  link.append(avatar, element("span", "name"), element("span", "unread"));
  const item = element("li");
  item.dataset.node = node;
  item.append(link);
  return item;
}

function updatePerson(item, person) {
  const [avatar, name, unread] = item.firstElementChild.children;
  paintAvatar(avatar, person.name, person.node);
  const said = JSON.stringify([person.name, person.verified, person.writing]);
  if (name.dataset.said !== said) {
    name.dataset.said = said;
    name.replaceChildren(person.name);
    if (person.verified) name.append(verifiedMark());
    if (person.writing) name.append(element("span", "writing", "typing…"));
  }
  unread.hidden = person.unread === 0;
  unread.textContent = String(person.unread);
  unread.setAttribute("aria-label", `${person.unread} unread`);
  if (person.node === page.peer) item.firstElementChild.setAttribute("aria-current", "true");
  else item.firstElementChild.removeAttribute("aria-current");
}

// Puts what a list shows into its order, by key; an element that stays is the same one, so that a click that began on it
// ends on it.
function showKeyed(list, key, shown, keyOf, made, update) {
  const old = new Map(Array.from(list.children, (item) => [item.dataset[key], item]));
  let before = list.firstElementChild;
  for (const one of shown) {
    const item = old.get(keyOf(one)) ?? made(one);
    old.delete(keyOf(one));
    update(item, one);
    if (item === before) before = before.nextElementSibling;
    else list.insertBefore(item, before);
  }
  for (const gone of old.values()) gone.remove();
}

function showPeople(people) {
  page.people = people;
  showKeyed(at("people"), "node", people, (person) => person.node, (person) => newPerson(person.node), updatePerson);
  at("nobody").hidden = people.length > 0;
  const unread = people.reduce((sum, person) => sum + person.unread, 0);
  document.title = unread > 0 ? `(${unread}) Messenger` : "Messenger";
  showPeer();
  markRead();
}

function showPeer() {
  if (page.peer === null) return;
  const person = page.people.find((somebody) => somebody.node === page.peer);
  const name = person?.name ?? "Not a contact";
  at("peer-name").textContent = name;
  at("compare").hidden = person === undefined;
  at("compare").classList.toggle("done", person?.verified === true);
  at("compare-state").textContent = person?.verified ? "✓ Verified" : "Not verified";
  at("compare-node").textContent = page.peer;
  at("verify").textContent = person?.verified ? "Not verified after all" : "It is the same";
  at("typing").hidden = !person?.writing;
  at("typing").textContent = `${name} is typing…`;
  at("peer-node").textContent = page.peer;
  at("peer-node").title = page.peer;
  paintAvatar(at("peer-avatar"), name, page.peer);
}

// What came in is read once the person has the conversation before them.
async function markRead() {
  const peer = page.peer;
  const person = page.people.find((somebody) => somebody.node === peer);
  if (!person || person.unread === 0 || document.hidden) return;
  if (page.opening) {
    page.openAgain = true;
    return;
  }
  page.opening = true;
  try {
    await post("open", { peer });
  } catch {
    // Asked again with the next change of people, at the latest when the node is reachable again.
  } finally {
    page.opening = false;
  }
  if (!page.openAgain) return;
  page.openAgain = false;
  markRead();
}

// The person says that the node id is the one that its owner sees, or takes that back.
async function verify() {
  const node = page.peer;
  const verified = !page.people.find((person) => person.node === node)?.verified;
  at("verify").disabled = true;
  try {
    await post("verify", { node, verified });
    showProblem("verify-problem", null);
    at("compare").open = false;
  } catch (error) {
    showProblem("verify-problem", error.message);
  } finally {
    at("verify").disabled = false;
  }
}

// Searching.

let searchTimer = null;

async function search() {
  const words = at("words").value.trim();
  at("findings").hidden = words === "";
  at("contacts").hidden = words !== "";
  if (words === "") return;
  let found = [];
  try {
    const response = await fetch(`/messenger/search?words=${encodeURIComponent(words)}`);
    if (response.ok) found = await response.json();
  } catch {
    // The page says already that the node is not reachable.
  }
  if (at("words").value.trim() === words) showFound(found);
}

function showFound(lines) {
  at("nothing-found").hidden = lines.length > 0;
  at("found").replaceChildren(...lines.map((line) => {
    const link = element("a", "finding");
    link.href = `#${line.peer}`;
    const name = page.people.find((person) => person.node === line.peer)?.name ?? "Not a contact";
    link.append(
      element("span", "name", line.mine ? `You to ${name}` : name),
      element("span", "time", timeOf(line.at)),
      element("span", "text", line.text),
    );
    link.addEventListener("click", () => {
      page.wanted = line.id;
      showWanted();
    });
    const item = element("li");
    item.append(link);
    return item;
  }));
}

// Brings the line that a search led to into sight, once it is there.
function showWanted() {
  if (page.wanted === null) return;
  const item = at("lines").querySelector(`[data-id="${page.wanted}"]`);
  if (!item) return;
  page.wanted = null;
  item.scrollIntoView({ block: "center" });
  item.classList.add("wanted");
  setTimeout(() => item.classList.remove("wanted"), 2000);
}

// The conversation.

function timeOf(milliseconds) {
  const when = new Date(milliseconds);
  const today = when.toDateString() === new Date().toDateString();
  const clock = { hour: "2-digit", minute: "2-digit" };
  return today
    ? when.toLocaleTimeString([], clock)
    : when.toLocaleString([], { day: "numeric", month: "short", ...clock });
}

function newLine(line) {
  const item = element("li", "line");
  item.dataset.id = String(line.id);
  const time = element("time", "time", timeOf(line.at));
  time.dateTime = new Date(line.at).toISOString();
  time.title = new Date(line.at).toLocaleString();
  const about = element("div", "about");
  about.append(time);
  if (line.mine) about.append(element("span", "progress"));
  item.append(element("div", "text", line.text), about);
  return item;
}

function updateLine(item, line) {
  item.className = line.mine ? "line mine" : "line";
  item.classList.toggle("refused", line.progress === "refused");
  const progress = item.querySelector(".progress");
  if (!progress || progress.dataset.progress === line.progress) return;
  progress.dataset.progress = line.progress;
  progress.textContent = SIGNS[line.progress] ?? line.progress;
  progress.title = WORDS[line.progress] ?? line.progress;
  progress.setAttribute("role", "img");
  progress.setAttribute("aria-label", progress.title);
  item.querySelector(".why")?.remove();
  if (line.progress === "refused") item.querySelector(".about").append(element("span", "why", `refused: ${line.why}`));
}

function showLines(newestFirst) {
  page.lines = newestFirst.slice().reverse();
  showKeyed(at("lines"), "id", page.lines, (line) => String(line.id), newLine, updateLine);
  at("silence").hidden = page.lines.length > 0;
  showWanted();
}

let conversation = null;

function watchConversation() {
  conversation?.close();
  conversation = null;
  if (page.peer === null || document.hidden) return;
  const peer = page.peer;
  const show = (lines) => { if (peer === page.peer) showLines(lines); };
  // The stream of people says whether the node is reachable; one that fails alone is shown where it stands.
  conversation = watch(`conversation?peer=${encodeURIComponent(peer)}`, show, () => {});
}

function choose(peer) {
  if (page.peer !== null) page.drafts.set(page.peer, at("line").value);
  page.peer = peer;
  document.body.classList.toggle("talking", peer !== null);
  at("conversation").hidden = peer === null;
  at("nothing").hidden = peer !== null;
  at("lines").replaceChildren();
  at("silence").hidden = true;
  showProblem("problem", null);
  showProblem("verify-problem", null);
  at("compare").open = false;
  at("line").value = page.drafts.get(peer) ?? "";
  fitLine();
  for (const item of at("people").children) {
    if (item.dataset.node === peer) item.firstElementChild.setAttribute("aria-current", "true");
    else item.firstElementChild.removeAttribute("aria-current");
  }
  showPeer();
  watchConversation();
  markRead();
  if (peer !== null && matchMedia("(min-width: 44rem)").matches) at("line").focus();
}

function showProblem(id, message) {
  at(id).hidden = message === null;
  at(id).textContent = message ?? "";
}

// Writing.

function fitLine() {
  if (CSS.supports("field-sizing", "content")) return;
  const line = at("line");
  line.rows = Math.min(8, line.value.split("\n").length);
}

// The field keeps its text until the node has answered. A line that was not answered may have been taken: the same text
// is posted again under the same key, so that it is written once.
async function write() {
  const peer = page.peer;
  const text = at("line").value;
  if (peer === null || page.posting || text.trim() === "") return;
  const unanswered = page.unanswered.get(peer);
  const key = unanswered?.text === text ? unanswered.key : newKey();
  page.unanswered.set(peer, { text, key });
  setPosting(true);
  try {
    await post("write", { to: peer, text }, key);
    page.unanswered.delete(peer);
    page.drafts.delete(peer);
    keyTold = { peer: null, at: 0 };
    if (page.peer === peer) {
      at("line").value = "";
      at("scroll").scrollTop = 0; // its end, since it is reversed
      showProblem("problem", null);
    }
  } catch (error) {
    page.drafts.set(peer, text);
    if (page.peer === peer) showProblem("problem", `Not sent: ${error.message}. Press Enter to try again.`);
  } finally {
    setPosting(false);
    fitLine();
  }
}

// Tells the other that the person is typing, now and then. Where it fails nothing is lost.
let keyTold = { peer: null, at: 0 };

function tellKey() {
  const peer = page.peer;
  const told = keyTold.peer === peer && Date.now() - keyTold.at < KEY_EVERY_MS;
  if (peer === null || told || at("line").value.trim() === "") return;
  keyTold = { peer, at: Date.now() };
  post("key", { to: peer }).catch(() => {});
}

function setPosting(posting) {
  page.posting = posting;
  at("line").readOnly = posting;
  at("send").disabled = posting;
}

async function befriend() {
  const button = at("befriend-add");
  const node = at("befriend-node").value.trim();
  const name = at("befriend-name").value.trim();
  button.disabled = true;
  try {
    await post("befriend", { node, name });
    at("befriend").reset();
    showProblem("befriend-problem", null);
    location.hash = node;
  } catch (error) {
    showProblem("befriend-problem", error.message);
  } finally {
    button.disabled = false;
  }
}

async function copyNode() {
  const id = at("node-id");
  let copied = false;
  try {
    await navigator.clipboard.writeText(id.textContent);
    copied = true;
  } catch {
    getSelection().selectAllChildren(id); // for the person to copy
  }
  at("copy").textContent = copied ? "Copied" : "Selected";
  setTimeout(() => { at("copy").textContent = "Copy"; }, 1500);
}

// Beginning.

function chosen() {
  const peer = decodeURIComponent(location.hash.slice(1));
  return peer === "" ? null : peer;
}

at("line").addEventListener("input", () => { fitLine(); tellKey(); });
at("line").addEventListener("keydown", (event) => {
  if (event.key !== "Enter" || event.shiftKey || event.isComposing) return;
  event.preventDefault();
  write();
});
at("write").addEventListener("submit", (event) => { event.preventDefault(); write(); });
at("befriend").addEventListener("submit", (event) => { event.preventDefault(); befriend(); });
at("copy").addEventListener("click", copyNode);
at("verify").addEventListener("click", verify);
at("seek").addEventListener("submit", (event) => { event.preventDefault(); search(); });
at("words").addEventListener("input", () => {
  clearTimeout(searchTimer);
  searchTimer = setTimeout(search, SEARCH_AFTER_MS);
});
addEventListener("hashchange", () => choose(chosen()));
// A hidden page leaves its second stream to others: a browser opens six connections to one host.
document.addEventListener("visibilitychange", () => { watchConversation(); markRead(); });

showNode();
watch("people", showPeople, reachable);
choose(chosen());
