// agent-bridge for OpenCode: the project's memory in the first message of a session, and two tools.
// Written by `agent-bridge opencode install-plugin`; changes to this file are lost with the next update.
//
// Plain JavaScript for Bun and Node, without any package. Hooks as OpenCode 1.18.33 has them. Everything is
// asked of the command `agent-bridge`; where that is missing, slow or broken, OpenCode works as without this.

import { spawn } from "node:child_process"

const PROGRAM = "agent-bridge" // the installed copy has an absolute path here
const VERSION = "0" // and the version that installed it here
const FALLBACK = "agent-bridge"
const SERVER = "agent-bridge"
const SHIM = "agent-bridge-mcp"

const CONTEXT_MS = 10_000
const TOOL_MS = 30_000
const PAUSE_MS = 60_000 // after a failure no new session waits for the memory for so long
const OUTPUT_LIMIT = 4 * 1024 * 1024
const TEXT_LIMIT = 1024 * 1024
const QUERY_LIMIT = 1000
const SESSIONS_KEPT = 500
const PART = "prt_0000000000agentbridge"

export const AgentBridge = async ({ client, directory }) => {
  const texts = new Map() // session -> promise of its memory
  const told = new Set() // what the log has been told
  let summarising = "" // the session whose history is being summarised
  let pausedUntil = 0

  function log(message) {
    if (told.has(message)) return
    told.add(message)
    Promise.resolve()
      .then(() => client.app.log({ body: { service: "agent-bridge", level: "warn", message } }))
      .catch(() => {})
  }

  /** What a session is told; null where that can't be known now. */
  async function fetchMemory() {
    if (Date.now() < pausedUntil) return null
    try {
      const data = await ask(["opencode", "context", "--json", "--project", directory], { limit: CONTEXT_MS })
      if (typeof data?.text !== "string") throw new Error("it answered something else than a memory")
      if (data.version !== VERSION) {
        const versions = `The plugin is of version ${VERSION}, agent-bridge of ${data.version}`
        log(`${versions}: \`agent-bridge opencode install-plugin\` updates it.`)
      }
      return data.text
    } catch (error) {
      pausedUntil = Date.now() + PAUSE_MS
      log(`Sessions start without the project's memory: ${error.message}`)
      return null
    }
  }

  function memory(session) {
    if (!texts.has(session)) {
      const text = fetchMemory().then((found) => {
        if (found === null && texts.get(session) === text) texts.delete(session) // a later message asks again
        return found
      })
      texts.set(session, text)
      if (texts.size > SESSIONS_KEPT) texts.delete(texts.keys().next().value)
    }
    return texts.get(session)
  }

  const tool = {
    remember: {
      description:
        "Save a fact about this project or its user for future sessions: a decision and its reason, a " +
        "convention, a preference, something that took long to find out. One fact a call, in full sentences.",
      args: {
        text: { type: "string", description: "The fact, understandable without this conversation." },
        tags: { type: "array", items: { type: "string" }, description: "A few words to group it by." },
      },
      execute: (args, context) => answered(() => remember(args, directory, context)),
    },
    memory_search: {
      description: "Search what earlier sessions have remembered about this project and its user.",
      args: { query: { type: "string", description: "Words that all occur in the fact." } },
      execute: (args, context) => answered(() => search(args, directory, context)),
    },
  }

  return {
    tool,

    // Where our MCP server is configured it brings these tools: nothing is offered twice.
    config: async (config) => {
      if (!hasServer(config)) return
      delete tool.remember
      delete tool.memory_search
    },

    "tool.definition": async (input, output) => {
      if (input.toolID !== "remember" || !tool.remember || !output.jsonSchema) return
      output.jsonSchema = { ...output.jsonSchema, required: ["text"] }
    },

    event: async ({ event }) => {
      const properties = event?.properties ?? {}
      if (event?.type === "session.created" && properties.info?.id) void memory(properties.info.id)
      if (event?.type === "session.compacted") {
        texts.delete(properties.sessionID)
        summarising = ""
      }
      if (event?.type === "session.deleted") texts.delete(properties.info?.id)
    },

    "chat.message": async () => {
      summarising = ""
    },

    "experimental.session.compacting": async ({ sessionID }) => {
      summarising = sessionID
    },

    // The memory is put in front of the first message of what is sent and stored nowhere: so it is there
    // once, in a continued session, after a compaction and in a subagent's session too, and neither in the
    // session's file nor in what its user shares.
    "experimental.chat.messages.transform": async (_input, output) => {
      const messages = output?.messages
      const at = Array.isArray(messages) ? messages.findIndex((one) => one?.info?.role === "user") : -1
      if (at < 0) return
      const first = messages[at]
      const { id, sessionID } = first.info
      if (summarising) {
        const isSummary = summarising === sessionID
        summarising = ""
        if (isSummary) return
      }
      const text = await memory(sessionID)
      if (!text) return
      // Another copy of this plugin, installed for all projects say, may have been here before.
      if (messages[at].parts?.some((part) => part?.id === PART)) return
      const part = { id: PART, sessionID, messageID: id, type: "text", text, synthetic: true }
      messages[at] = { ...messages[at], parts: [part, ...(messages[at].parts ?? [])] }
    },
  }
}

function hasServer(config) {
  return Object.entries(config?.mcp ?? {}).some(([name, server]) => {
    if (!server || typeof server !== "object" || server.enabled === false) return false
    const words = Array.isArray(server.command) ? server.command : []
    return name === SERVER || words.some((word) => String(word).split(/[\\/]/).pop() === SHIM)
  })
}

async function answered(work) {
  try {
    return await work()
  } catch (error) {
    return `Not done: ${error.message}`
  }
}

async function remember(args, directory, context) {
  const text = typeof args?.text === "string" ? plain(args.text) : ""
  if (!text.trim()) throw new Error("the text is empty.")
  if (Buffer.byteLength(text) > TEXT_LIMIT) throw new Error("the text is over 1 MiB; a fact has a few sentences.")
  const words = ["add", "--json", "--source", "opencode", "--project", directory]
  if (context?.sessionID) words.push(`--session=${context.sessionID}`)
  for (const tag of tagsOf(args.tags)) words.push(`--tag=${tag}`)
  const options = { limit: TOOL_MS, input: text, abort: context?.abort }
  const { data, messages } = await envelope([...words, "--", "-"], options)
  const remarks = messages.map((one) => one?.text).filter((one) => typeof one === "string")
  return [`Remembered as ${data.fact.id}.`, ...remarks].join("\n")
}

async function search(args, directory, context) {
  const query = typeof args?.query === "string" ? cut(oneLine(args.query), QUERY_LIMIT) : ""
  if (!query) throw new Error("say what to search for.")
  const words = ["search", "--json", "--limit", "20", "--project", directory, "--", query]
  const { data, messages } = await envelope(words, { limit: TOOL_MS, abort: context?.abort })
  if (!data.hits.length) return messages.map((one) => one.text).join("\n") || "No fact fits."
  const lines = data.hits.map((hit) => `[${hit.id}] ${oneLine(hit.title)}: ${oneLine(hit.snippet)}`)
  return [...lines, "", "`agent-bridge show ID` prints a fact in full."].join("\n")
}

function tagsOf(tags) {
  const given = typeof tags === "string" ? tags.split(",") : Array.isArray(tags) ? tags : []
  const words = given.filter((tag) => typeof tag === "string")
  const texts = words.map((tag) => cut(oneLine(tag), 100))
  return texts.filter(Boolean).slice(0, 20)
}

// Without NULs, which no argument and no fact can have, and without halves of characters.
function plain(text) {
  return text.replaceAll("\0", "").toWellFormed()
}

function cut(text, limit) {
  return text.slice(0, limit).toWellFormed().trim()
}

function oneLine(text) {
  return plain(String(text ?? "")).replace(/\s+/g, " ").trim()
}

async function ask(words, options) {
  return (await envelope(words, options)).data
}

/** What `agent-bridge WORDS` answers with --json; an Error that says why where it doesn't. */
async function envelope(words, options) {
  const printed = await run(PROGRAM, words, options).catch((error) => {
    if (error.code !== "ENOENT" || PROGRAM === FALLBACK) throw error
    return run(FALLBACK, words, options)
  })
  let answer
  try {
    answer = JSON.parse(printed)
  } catch {
    throw new Error("agent-bridge printed something that isn't JSON.")
  }
  const failure = answer?.errors?.[0]
  if (failure) throw new Error([failure.title, failure.detail, failure.remedy].filter(Boolean).join(" "))
  if (!answer?.data) throw new Error("agent-bridge answered without data.")
  return { data: answer.data, messages: Array.isArray(answer.messages) ? answer.messages : [] }
}

/** Run a program without a shell; what it prints. It is killed after `limit` milliseconds. */
function run(program, words, { limit, input = "", abort }) {
  return new Promise((resolve, reject) => {
    const child = spawn(program, words, { stdio: ["pipe", "pipe", "ignore"], windowsHide: true })
    const pieces = []
    let size = 0
    const late = new Error(`agent-bridge didn't answer within ${limit / 1000} s.`)
    const timer = setTimeout(() => end(late), limit)
    const stop = () => end(new Error("it was stopped."))

    // Settled here and not when the pipes close: a grandchild may hold them open.
    function end(error) {
      clearTimeout(timer)
      abort?.removeEventListener?.("abort", stop)
      if (!error) return resolve(Buffer.concat(pieces).toString("utf8"))
      child.kill("SIGKILL")
      child.stdout?.destroy()
      child.unref?.()
      reject(error)
    }

    child.on("error", (error) => {
      const failure = new Error(`agent-bridge can't be run: ${error.message}`)
      end(Object.assign(failure, { code: error.code }))
    })
    child.on("close", () => end())
    child.stdout.on("data", (piece) => {
      size += piece.length
      if (size > OUTPUT_LIMIT) return end(new Error("agent-bridge printed too much."))
      pieces.push(piece)
    })
    child.stdin.on("error", () => {}) // it ended before it had read everything: its answer says why
    child.stdin.end(input)
    if (abort?.aborted) return stop()
    abort?.addEventListener?.("abort", stop, { once: true })
  })
}
