-- Written by `unisono slurm install`; every install overwrites it.
-- Every job is held until it has a reservation for its whole gang. This runs under slurmctld's
-- locks: it decides from what it is handed, and never waits.

local MODE = "@MODE@"
local REQUESTS = "@REQUESTS@"
local OPERATORS = { @OPERATORS@ }
local SITE = "@SITE@"
local PLACEHOLDER = "unisono-placeholder"

local NOT_SET = 4294967294
local RELEASE = 4294967295

local site = {}
if SITE ~= "" then
   -- The site's own script comes first; what it refuses stays refused.
   slurm_job_submit, slurm_job_modify = nil, nil
   dofile(SITE)
   site.submit, site.modify = slurm_job_submit, slurm_job_modify
end

local function is_operator(uid)
   for _, known in ipairs(OPERATORS) do
      if uid == known then return true end
   end
   return false
end

-- Writes a request for the bridge, which reads and removes the file: users may not write marks.
local function request(...)
   local file = io.open(REQUESTS, "a")
   if file then
      file:write(string.format(...), "\n")
      file:close()
   end
end

local function is_set(number)
   return number ~= nil and number ~= NOT_SET
end

function slurm_job_submit(job, partitions, uid)
   if site.submit then
      local code = site.submit(job, partitions, uid)
      if code ~= slurm.SUCCESS then return code end
   end
   if job.name == PLACEHOLDER and is_operator(uid) then return slurm.SUCCESS end
   request("submitted")
   if MODE == "stage" then
      if job.user_id ~= 0 then -- Slurm gives root no burst buffers
         job.burst_buffer = "#BB_LUA unisono"
      end
      return slurm.SUCCESS
   end
   local mark = "unisono:gate"
   if is_set(job.priority) and job.priority == 0 then
      mark = "unisono:hold"
   elseif is_set(job.priority) and is_operator(uid) then
      mark = mark .. " priority=" .. string.format("%d", job.priority)
   end
   job.priority = 0
   job.admin_comment = mark
   return slurm.SUCCESS
end

function slurm_job_modify(job, record, partitions, uid)
   if site.modify then
      local code = site.modify(job, record, partitions, uid)
      if code ~= slurm.SUCCESS then return code end
   end
   local state = string.match(record.admin_comment or "", "^unisono:(%a+)")
   if MODE ~= "gate" or state == nil or job.admin_comment ~= nil then
      return slurm.SUCCESS -- not a job of the gate, or the bridge itself
   end
   if is_set(job.priority) then
      if job.priority == 0 then
         request("hold %d", record.job_id)
      elseif job.priority == RELEASE and state == "hold" then
         request("release %d", record.job_id)
         job.priority = 0
      elseif job.priority == RELEASE and state == "gate" then
         slurm.log_user("this job waits for its reservation; it is released when it has one")
         return slurm.ERROR
      end
   end
   return slurm.SUCCESS
end

return slurm.SUCCESS
