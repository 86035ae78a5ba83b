-- What somebody does in Neovim, headless, with the language client that it comes with. The arguments come from the environment:
-- the command of the server, the project, and where to write what was seen.
local root, out = vim.env.PROJECT, vim.env.SEEN
local seen = {}

local function finish(failure)
  seen.failure = failure
  local file = io.open(out, 'w')
  file:write(vim.json.encode(seen))
  file:close()
  vim.cmd('qall!')
end

local function wait(what, check)
  if not vim.wait(60000, check, 50) then
    error('no ' .. what)
  end
end

local function position(words, offset)
  for number, line in ipairs(vim.api.nvim_buf_get_lines(0, 0, -1, true)) do
    local begin = line:find(words, 1, true)
    if begin then
      return { line = number - 1, character = begin - 1 + (offset or 0) }
    end
  end
  error('not in the text: ' .. words)
end

local function ask(method, words, offset, more)
  local params = { textDocument = vim.lsp.util.make_text_document_params(), position = position(words, offset) }
  local answers = vim.lsp.buf_request_sync(0, method, vim.tbl_extend('force', params, more or {}), 60000)
  for _, answer in pairs(answers or {}) do
    return answer.result
  end
end

local function replace(words, other)
  local at = position(words)
  vim.api.nvim_buf_set_text(0, at.line, at.character, at.line, at.character + #words, { other })
end

local function session()
  vim.cmd('edit ' .. root .. '/models/marts/departures_hourly.sql')
  local client = vim.lsp.start_client({
    name = 'headrace',
    cmd = { vim.env.PYTHON, '-P', '-m', 'engine', 'lsp', '--project-dir', root },
    root_dir = root,
  })
  vim.lsp.buf_attach_client(0, client)
  wait('client', function() return vim.lsp.buf_get_clients(0)[client] ~= nil and vim.lsp.buf_get_clients(0)[client].initialized end)
  seen.hover = ask('textDocument/hover', 'departure_delay)', 2).contents.value

  -- A name that does not exist, typed and not saved.
  replace('avg(departure_delay)', 'avg(departure_delai)')
  wait('diagnostic', function() return #vim.diagnostic.get(0) > 0 end)
  local found = vim.diagnostic.get(0)[1]
  seen.diagnostic = { code = found.code, line = found.lnum, column = found.col, message = found.message }
  local wrong = found.user_data and found.user_data.lsp or {}
  local diagnostic = {
    range = { start = { line = found.lnum, character = found.col }, ['end'] = { line = found.end_lnum, character = found.end_col } },
    message = found.message, code = found.code or wrong.code, severity = 1, source = 'headrace',
  }
  local actions = ask('textDocument/codeAction', 'departure_delai', 0, {
    range = diagnostic.range, context = { diagnostics = { diagnostic } },
  })
  seen.actions = {}
  for _, action in ipairs(actions) do
    table.insert(seen.actions, action.title)
    if action.title == "Change to 'departure_delay'" then
      vim.lsp.util.apply_workspace_edit(action.edit, 'utf-16')
    end
  end
  wait('end of the diagnostic', function() return #vim.diagnostic.get(0) == 0 end)
  seen.line = vim.api.nvim_buf_get_lines(0, position('avg(').line, position('avg(').line + 1, true)[1]

  replace('    count(*) as departures,', '    count(*) as departures, dep')
  local items = ask('textDocument/completion', 'departures, dep', #'departures, dep')
  seen.completion = {}
  for _, item in ipairs(items.items or items) do
    seen.completion[item.label] = item.detail
  end
  vim.cmd('undo')
  -- What was undone is compiled first.
  local place
  wait('the definition', function()
    place = ask('textDocument/definition', "ref('flights')", 6)
    return place and place[1] ~= nil
  end)
  vim.lsp.util.jump_to_location(place[1], 'utf-16')
  seen.definition = vim.api.nvim_buf_get_name(0)
end

local ok, failure = pcall(session)
finish(not ok and tostring(failure) or nil)
