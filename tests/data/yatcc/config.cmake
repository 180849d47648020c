# The settings of whoever uses this.
set(STUDENT_NAME "nobody")
set(TASK1_WITH "flex")
set(TASK2_WITH "bison")
set(TASK2_REVIVE ON)
set(TASK3_REVIVE ON) # as it comes
set(TASK4_REVIVE ON)
